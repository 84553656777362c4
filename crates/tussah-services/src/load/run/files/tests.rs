//! Tests of the file set, as SPECweb99 and the papers describe it.

use super::*;

#[test]
fn sizes() {
    let check = |text: &str, directories: usize| {
        let set = FileSet::of_size(text);
        assert_eq!(set.map(FileSet::directories), Ok(directories), "{text}");
    };
    check("100MB", 20);
    check("3.3GB", 678);
    check("5MB", 1);
    assert!(FileSet::of_size("1MB").is_err());
    assert!(FileSet::of_size("1000GB").is_err());
    assert!(FileSet::of_size("many").is_err());
    let set = FileSet::of(20).expect("a set");
    assert_eq!(set.files(), 720);
    let sum: u64 = (0..720).map(|file| FileNumber(file).len()).sum();
    assert_eq!(sum, set.bytes());
}

#[test]
fn names_and_lengths() {
    let check = |number: u32, path: &str, len: u64| {
        assert_eq!(FileNumber(number).path(), path);
        assert_eq!(FileNumber(number).len(), len);
    };
    check(0, "dir00000/class0_0", 102);
    check(8, "dir00000/class0_8", 918);
    check(9, "dir00000/class1_0", 1_024);
    check(35, "dir00000/class3_8", 921_600);
    check(36 * 7 + 22, "dir00007/class2_4", 51_200);
}

#[test]
fn contents_do_not_depend_on_the_pieces() {
    let mut whole = vec![0; 918];
    FileNumber(8).contents().fill(&mut whole);
    assert!(whole.iter().all(|byte| (b' '..=b'_').contains(byte)));
    for piece in [1, 3, 7, 8, 13, 918] {
        let mut contents = FileNumber(8).contents();
        let right = whole.chunks(piece).all(|bytes| contents.continues(bytes));
        assert!(right, "in pieces of {piece}");
    }
    assert!(!FileNumber(9).contents().continues(&whole));
    whole[500] ^= 1;
    assert!(!FileNumber(8).contents().continues(&whole));
}

#[test]
fn popularity() {
    let popularity = Popularity::of(FileSet::of(20).expect("a set"));
    let mut random = Rng::with_seed(1);
    let mut classes = [0.0; CLASSES];
    let mut files = [0.0; PER_CLASS];
    let mut directories = [0.0; 20];
    let picks = 200_000;
    for _ in 0..picks {
        let picked = popularity.pick(&mut random);
        let (class, file) = picked.class_and_file();
        classes[class] += 1.0 / f64::from(picks);
        files[file] += 1.0 / f64::from(picks);
        directories[picked.0 as usize / FILES] += 1.0 / f64::from(picks);
    }
    let near = |seen: &[f64], expected: &[f64]| {
        for (seen, expected) in seen.iter().zip(expected) {
            assert!((seen - expected).abs() < 0.005, "{seen} for {expected}");
        }
    };
    near(&classes, &[0.35, 0.50, 0.14, 0.01]);
    // The table of SPECweb99.
    let table = [
        0.039, 0.059, 0.088, 0.178, 0.353, 0.118, 0.071, 0.050, 0.044,
    ];
    near(&files, &table);
    // 1/k over the sum of 1/1 to 1/20, which is 3.598.
    near(&directories[..3], &[0.278, 0.139, 0.093]);
    near(&directories[19..], &[0.0139]);
}
