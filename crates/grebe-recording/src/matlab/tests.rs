use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::*;

fn element(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = [kind.to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
    out.extend(bytes);
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

/// A name of up to four letters, as MATLAB writes short ones.
fn small(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = (kind | (bytes.len() as u32) << 16).to_le_bytes().to_vec();
    out.extend(bytes);
    out.resize(8, 0);
    out
}

fn matrix(name: &str, class: u32, dimensions: &[i32], parts: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let flags = class | if parts.len() > 1 { 0x0800 } else { 0 };
    let sizes: Vec<u8> = dimensions.iter().flat_map(|axis| axis.to_le_bytes()).collect();
    let mut inner = element(6, &[flags.to_le_bytes(), [0; 4]].concat());
    inner.extend(element(5, &sizes));
    inner.extend(if name.len() <= 4 { small(1, name.as_bytes()) } else { element(1, name.as_bytes()) });
    for (kind, bytes) in parts {
        inner.extend(if bytes.len() <= 4 { small(*kind, bytes) } else { element(*kind, bytes) });
    }
    element(MATRIX_KIND, &inner)
}

const MATRIX_KIND: u32 = 14;

fn compressed(matrix: &[u8]) -> Vec<u8> {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(matrix).unwrap();
    let bytes = zlib.finish().unwrap();
    [15u32.to_le_bytes().to_vec(), (bytes.len() as u32).to_le_bytes().to_vec(), bytes].concat()
}

fn mat(matrices: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"MATLAB 5.0 MAT-file, made by a test".to_vec();
    out.resize(124, b' ');
    out.extend([0, 1]);
    out.extend(b"IM");
    out.extend(matrices.concat());
    out
}

fn doubles(values: impl Iterator<Item = f64>) -> Vec<u8> {
    values.flat_map(f64::to_le_bytes).collect()
}

#[test]
fn the_array_of_a_file_is_read_whatever_its_shape_and_its_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mat");
    let rate = matrix("Fs", 6, &[1, 1], &[(4, 48_000u16.to_le_bytes().to_vec())]);
    let text = matrix("who", 4, &[1, 2], &[(4, vec![b'm', 0, b'e', 0])]);
    // Integers in an array of floats take few bytes.
    let tall = matrix("x", 6, &[300, 2], &[(2, (0..600).map(|at| (at % 251) as u8).collect())]);
    for tall in [tall.clone(), compressed(&tall)] {
        std::fs::write(&path, mat(&[text.clone(), tall, rate.clone()])).unwrap();
        let mut file = SampleFile::open(&path).unwrap();
        assert_eq!((file.channels(), file.len_samples(), file.rate_hz()), (2, 300, Some(48e3)));
        assert!(file.notes()[0].contains("its Fs is taken as the rate, 48000 S/s"), "{:?}", file.notes());
        let block = file.block(0, 300).unwrap();
        assert_eq!(block.channel::<f64>(1).unwrap()[..2], [49.0, 50.0]);
    }
    let wide = matrix("signal", 10, &[2, 9], &[(3, (0..18i16).flat_map(i16::to_le_bytes).collect())]);
    std::fs::write(&path, mat(&[wide])).unwrap();
    let mut file = SampleFile::open(format!("{}?rate=8k", path.display())).unwrap();
    assert_eq!((file.channels(), file.len_samples(), file.rate_hz()), (2, 9, Some(8e3)));
    assert_eq!(file.block(0, 3).unwrap().channel::<i16>(1).unwrap().as_ref(), [1, 3, 5]);
    let iq = [(9, doubles((0..5).map(f64::from))), (9, doubles((0..5).map(|at| -0.5 * f64::from(at))))];
    std::fs::write(&path, mat(&[compressed(&matrix("iq", 6, &[1, 5], &iq))])).unwrap();
    let mut file = SampleFile::open(&path).unwrap();
    let block = file.block(0, 5).unwrap();
    let last = block.channel::<grebe_frame::Complex<f32>>(0).unwrap()[4];
    assert_eq!((last.re, last.im), (4.0, -2.0));
}

#[test]
fn several_arrays_need_a_name_and_damage_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mat");
    let array = |name: &str| matrix(name, 9, &[8, 1], &[(2, (0..8).collect())]);
    let whole = mat(&[array("a"), array("b")]);
    std::fs::write(&path, &whole).unwrap();
    let error = |query: &str| SampleFile::open(format!("{}{query}", path.display())).unwrap_err().to_string();
    assert!(
        error("").contains("holds several arrays, a (8 x 1), b (8 x 1): name one, as in '"),
        "{}",
        error("")
    );
    assert!(
        error("").contains("x.mat?array=a'") && error("?array=c").contains("has no array c"),
        "{}",
        error("")
    );
    let named = format!("{}?array=b&rate=1k", path.display());
    assert_eq!(SampleFile::open(named).unwrap().len_samples(), 8);
    for length in (128..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        assert!(SampleFile::open(&path).is_err() || length >= 128 + array("a").len());
    }
    std::fs::write(&path, mat(&[matrix("x", 9, &[9, 1], &[(2, (0..8).collect())])])).unwrap();
    assert!(error("").contains("number of values differs"), "{}", error(""));
    let mut hdf5 = b"MATLAB 7.3 MAT-file".to_vec();
    hdf5.resize(600, 0);
    std::fs::write(&path, hdf5).unwrap();
    assert!(error("").contains("h5py.File('"), "{}", error(""));
    std::fs::write(&path, b"anything").unwrap();
    assert!(error("").contains("scipy.io.loadmat('"), "{}", error(""));
}
