//! Modules for files.

mod directory_list;
mod file_append;
mod file_lines;
mod lines_out;
mod read_file;
mod root;

pub use self::directory_list::DirectoryList;
pub use self::file_append::FileAppend;
pub use self::file_lines::FileLines;
pub use self::lines_out::LinesOut;
pub use self::read_file::{Contents, ReadFile};
pub(super) use self::root::Root;
