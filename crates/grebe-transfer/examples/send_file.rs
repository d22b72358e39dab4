//! Sends a file from one thread to another over UDP, as two hosts would.
//!
//!     cargo run -p grebe-transfer --example send_file -- FILE DIR

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use grebe_transfer::{ReceiveListener, ReceiveOptions, SendOptions, Source, send};

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [file, directory] = &paths[..] else { return Err("send_file FILE DIR".into()) };
    let listener = ReceiveListener::bind("127.0.0.1:0".parse()?, 60)?;
    // The ticket is what one person hands to another; `ticket.word()` is its text.
    let ticket = listener.ticket().clone();
    let source = Arc::new(Source::open(std::slice::from_ref(file))?);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| listener.receive(directory, &ReceiveOptions::default(), |_| {}));
        let sent = send(&source, &ticket, &SendOptions::default(), |_| {})?;
        println!("{} bytes in {:.3} s", sent.file_bytes, sent.took.as_secs_f64());
        if let Ok(received) = receiving.join() {
            println!("{}", received?.paths[0].display());
        }
        Ok(())
    })
}
