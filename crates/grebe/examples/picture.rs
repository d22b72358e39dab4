//! Draws a stream or a recording as a PNG file, as `grebe view --png` does.
//!
//! `cargo run -p grebe --example picture -- examples/data/ecg.sigmf-meta ecg.png`

use std::error::Error;
use std::path::Path;

use grebe::prelude::*;
use grebe::view::{PngOptions, ScopeStage, SourceStatus, ViewOptions, render_png};

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [uri, png] = &arguments[..] else { return Err("usage: picture URI PICTURE.png".into()) };
    draw(&uri.parse()?, png.as_ref())
}

fn draw(uri: &Uri, png: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    let source = open_source(uri, SourceOptions::default(), &mut |notice| eprintln!("{notice}"))?;
    let (scope, link) = ScopeStage::new(64 << 20);

    let mut graph = Graph::new();
    let source = graph.add_boxed("source", source.stage);
    let scope = graph.add("scope", scope);
    graph.connect(source, scope, QueueOptions::block(64));
    let running = graph.start()?;

    let name = uri.to_string();
    let options = ViewOptions::new(move || SourceStatus { name: name.clone(), ..SourceStatus::default() });
    render_png(&link, options, &PngOptions::new(png), |bytes| std::fs::write(png, bytes))?;
    running.stop()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_a_png() -> Result<(), Box<dyn Error + Send + Sync>> {
        let folder = tempfile::tempdir()?;
        let png = folder.path().join("x.png");
        draw(&"synth:sine?channels=2&samples=10k&rate=10k".parse()?, &png)?;
        assert!(std::fs::read(&png)?.starts_with(b"\x89PNG"));
        Ok(())
    }
}
