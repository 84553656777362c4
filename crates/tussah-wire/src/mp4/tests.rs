//! Tests with files that are made here.

use proptest::prelude::*;

use super::*;

fn boxed(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(8 + body.len()).expect("a short box");
    [&len.to_be_bytes(), kind.as_slice(), body].concat()
}

fn mvhd(version: u8, timescale: u32, duration: u64) -> Vec<u8> {
    let mut body = vec![version, 0, 0, 0];
    match version {
        0 => {
            body.extend([0; 8]);
            body.extend(timescale.to_be_bytes());
            body.extend((duration as u32).to_be_bytes());
        }
        _ => {
            body.extend([0; 16]);
            body.extend(timescale.to_be_bytes());
            body.extend(duration.to_be_bytes());
        }
    }
    body.extend([0; 80]);
    boxed(b"mvhd", &body)
}

fn sidx(version: u8, timescale: u32, first: u32, entries: &[(u32, u32)]) -> Vec<u8> {
    let mut body = vec![version, 0, 0, 0, 0, 0, 0, 1];
    body.extend(timescale.to_be_bytes());
    if version == 0 {
        body.extend([0; 4]);
    } else {
        body.extend([0; 12]);
    }
    body.extend(first.to_be_bytes());
    body.extend([0, 0]);
    body.extend((entries.len() as u16).to_be_bytes());
    for (len, duration) in entries {
        body.extend(len.to_be_bytes());
        body.extend(duration.to_be_bytes());
        body.extend([0x90, 0, 0, 0]);
    }
    boxed(b"sidx", &body)
}

fn describe(file: &[u8]) -> Option<Movie> {
    let read = |at: u64, buffer: &mut [u8]| {
        let at = at as usize;
        buffer.copy_from_slice(&file[at..at + buffer.len()]);
        Ok(())
    };
    movie(file.len() as u64, read).expect("the memory does not fail")
}

#[test]
fn the_duration_is_that_of_the_header() {
    let check = |file: &[Vec<u8>], expected: Option<Option<u64>>| {
        let movie = describe(&file.concat());
        assert_eq!(movie.map(|movie| movie.duration_ms), expected);
    };
    let (ftyp, mdat) = (boxed(b"ftyp", b"isom\0\0\0\0"), boxed(b"mdat", &[7; 99]));
    let moov = |inner: Vec<u8>| boxed(b"moov", &inner);
    let header = moov(mvhd(0, 600, 36_000));
    check(
        &[ftyp.clone(), header.clone(), mdat.clone()],
        Some(Some(60_000)),
    );
    // The index often comes last.
    check(
        &[ftyp.clone(), mdat.clone(), header.clone()],
        Some(Some(60_000)),
    );
    check(std::slice::from_ref(&header), Some(Some(60_000)));
    check(
        &[ftyp.clone(), moov(mvhd(1, 1000, 1 << 40))],
        Some(Some(1 << 40)),
    );
    check(&[ftyp.clone(), moov(mvhd(0, 0, 5))], Some(None));
    check(
        &[ftyp.clone(), moov(mvhd(0, 600, u32::MAX.into()))],
        Some(None),
    );
    let mehd = boxed(b"mvex", &boxed(b"mehd", &[0, 0, 0, 0, 0, 0, 0x17, 0x70]));
    check(
        &[ftyp.clone(), moov([mvhd(0, 600, 0), mehd].concat())],
        Some(Some(10_000)),
    );
    check(&[ftyp.clone(), mdat.clone()], None);
    check(&[ftyp.clone(), moov(Vec::new())], None);
    check(&[b"RIFF....AVI LIST".to_vec()], None);
    check(&[], None);
    // The box of the data has a length of 64 bits, or reaches to the end.
    let long = [
        &[0, 0, 0, 1],
        b"mdat".as_slice(),
        &24_u64.to_be_bytes(),
        &[7; 8],
    ]
    .concat();
    check(&[ftyp.clone(), long, header.clone()], Some(Some(60_000)));
    check(
        &[ftyp, header, vec![0, 0, 0, 0, b'm', b'd', b'a', b't', 1]],
        Some(Some(60_000)),
    );
}

#[test]
fn fragments_are_those_of_the_index() {
    for version in [0, 1] {
        let head = [
            boxed(b"ftyp", b"iso5\0\0\0\0"),
            boxed(b"moov", &mvhd(0, 1000, 0)),
        ]
        .concat();
        let index = sidx(version, 500, 3, &[(100, 1000), (50, 500)]);
        let start = (head.len() + index.len()) as u64 + 3;
        let file = [head.clone(), index, vec![0; 153]].concat();
        let movie = describe(&file).expect("it is MP4");
        assert_eq!(movie.init, 0..head.len() as u64);
        assert_eq!(movie.duration_ms, Some(3000));
        let fragment = |bytes, duration_ms| Fragment { bytes, duration_ms };
        let expected = [
            fragment(start..start + 100, 2000),
            fragment(start + 100..start + 150, 1000),
        ];
        assert_eq!(movie.fragments, expected);
        // A fragment beyond the end of the file makes the index useless.
        let movie = describe(&file[..file.len() - 1]).expect("it is MP4");
        assert_eq!(movie.fragments, []);
    }
}

proptest! {
    #[test]
    fn no_file_makes_the_reader_panic(
        kinds in prop::collection::vec(0..7_usize, 0..6),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in 0..200_usize,
    ) {
        let mut file = boxed(b"ftyp", b"isom");
        for kind in kinds {
            let kind = [b"moov", b"mvhd", b"mvex", b"mehd", b"sidx", b"mdat", b"free"][kind];
            file.extend(boxed(kind, &bytes[..at.min(bytes.len())]));
            file = if file.len().is_multiple_of(3) { boxed(b"moov", &file) } else { file };
        }
        file.extend(&bytes);
        if let Some(movie) = describe(&file) {
            prop_assert!(movie.init.end <= file.len() as u64);
            let within = |it: &Fragment| it.bytes.end <= file.len() as u64;
            prop_assert!(movie.fragments.iter().all(within));
        }
    }
}
