//! Files.

use std::sync::Arc;

use tussah::fs::{self, AlignedBuf, File, OpenOptions, ReadDir};

use super::{futures, paths};

/// Awaits a future with each kind of buffer that can be written.
macro_rules! buffers {
    ($buffer:ident => $future:expr) => {{
        const BYTES: &[u8] = b"static";
        {
            let $buffer = "static";
            let _ = $future.await;
        }
        {
            let $buffer = BYTES;
            let _ = $future.await;
        }
        {
            let $buffer = b"static";
            let _ = $future.await;
        }
        {
            let $buffer = String::new();
            let _ = $future.await;
        }
        {
            let $buffer = Vec::<u8>::new();
            let _ = $future.await;
        }
        {
            let $buffer = Box::<[u8]>::default();
            let _ = $future.await;
        }
        {
            let $buffer = Box::<str>::default();
            let _ = $future.await;
        }
        {
            let $buffer = Arc::<[u8]>::default();
            let _ = $future.await;
        }
        {
            let $buffer = Arc::<str>::default();
            let _ = $future.await;
        }
        {
            let $buffer = Arc::<Vec<u8>>::default();
            let _ = $future.await;
        }
        {
            let $buffer = AlignedBuf::with_capacity(1, 512);
            let _ = $future.await;
        }
    }};
}

/// Awaits a future with each kind of room that can be read into.
macro_rules! room {
    ($room:ident => $future:expr) => {{
        {
            let $room = Vec::<u8>::new();
            let _ = $future.await;
        }
        {
            let $room = Box::<[u8]>::default();
            let _ = $future.await;
        }
        {
            let $room = AlignedBuf::with_capacity(1, 512);
            let _ = $future.await;
        }
    }};
}

futures! {
    "fs/file::open" () { paths!(path => File::open(path)) }
    "fs/file::create" () { paths!(path => File::create(path)) }
    "fs/file::read_at" (file: File) { room!(room => file.read_at(room, 0)) }
    "fs/file::read_exact_at" (file: File) { room!(room => file.read_exact_at(room, 0)) }
    "fs/file::write_at" (file: File) { buffers!(buffer => file.write_at(buffer, 0)) }
    "fs/file::write_all_at" (file: File) { buffers!(buffer => file.write_all_at(buffer, 0)) }
    "fs/file::append" (file: File) { buffers!(buffer => file.append(buffer)) }
    "fs/file::sync_all" (file: File) { file.sync_all().await }
    "fs/file::sync_data" (file: File) { file.sync_data().await }
    "fs/file::set_len" (file: File) { file.set_len(0).await }
    "fs/file::metadata" (file: File) { file.metadata().await }
    "fs/file::len" (file: File) { file.len().await }
    "fs/file::close" (file: File) { file.close().await }
    "fs/options::open" (options: OpenOptions) { paths!(path => options.open(path)) }
    "fs/whole::read" () { paths!(path => fs::read(path)) }
    "fs/whole::read_to_string" () { paths!(path => fs::read_to_string(path)) }
    "fs/whole::write" () {
        paths!(path => fs::write(path, "static"));
        paths!(path => fs::write(path, vec![0; 1]));
        buffers!(buffer => fs::write("static", buffer));
        buffers!(buffer => fs::write(String::new(), buffer));
    }
    "fs/whole::copy" () {
        paths!(path => fs::copy(path, "static"));
        paths!(path => fs::copy("static", path));
    }
    "fs/dir::read_dir" () { paths!(path => fs::read_dir(path)) }
    "fs/dir::next" (entries: ReadDir) { entries.next().await }
    "fs/dir::ReadDir" (entries: ReadDir) { futures_lite::StreamExt::next(&mut entries).await }
    "fs/names::metadata" () { paths!(path => fs::metadata(path)) }
    "fs/names::symlink_metadata" () { paths!(path => fs::symlink_metadata(path)) }
    "fs/names::exists" () { paths!(path => fs::exists(path)) }
    "fs/names::rename" () {
        paths!(path => fs::rename(path, "static"));
        paths!(path => fs::rename("static", path));
    }
    "fs/names::hard_link" () {
        paths!(path => fs::hard_link(path, "static"));
        paths!(path => fs::hard_link("static", path));
    }
    "fs/names::symlink" () {
        paths!(path => fs::symlink(path, "static"));
        paths!(path => fs::symlink("static", path));
    }
    "fs/names::remove_file" () { paths!(path => fs::remove_file(path)) }
    "fs/names::remove_dir" () { paths!(path => fs::remove_dir(path)) }
    "fs/names::remove_dir_all" () { paths!(path => fs::remove_dir_all(path)) }
    "fs/names::create_dir" () { paths!(path => fs::create_dir(path)) }
    "fs/names::create_dir_all" () { paths!(path => fs::create_dir_all(path)) }
    "fs/names::read_link" () { paths!(path => fs::read_link(path)) }
    "fs/names::canonicalize" () { paths!(path => fs::canonicalize(path)) }
    "fs/names::set_permissions" () { paths!(path => fs::set_permissions(path, 0)) }
}
