//! A graphics device that disappears while the window is open: the window closes with a message, instead of a panic or a
//! frozen picture.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use egui_wgpu::SurfaceErrorAction;
use wgpu::CurrentSurfaceTexture;

/// The reason of the loss, once it happened. The driver reports it from any thread; the window checks it at each frame.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceLoss {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    why: OnceLock<String>,
    /// Number of frames, number of the last failed one, and failures in a row.
    frames: AtomicU32,
    failed_at: AtomicU32,
    failed: AtomicU32,
}

impl DeviceLoss {
    /// Listens to the device's errors from now on; `wake` makes the window check. Without this, errors are panics.
    pub(super) fn watch(&self, device: &wgpu::Device, wake: impl Fn() + Clone + Send + Sync + 'static) {
        let (loss, wake_too) = (self.clone(), wake.clone());
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            loss.note(&error.to_string());
            wake_too();
        }));
        let loss = self.clone();
        device.set_device_lost_callback(move |_, message| {
            loss.note(&message);
            wake();
        });
    }

    /// The reason of the loss, or `None`. Check it once per frame.
    pub(super) fn why(&self) -> Option<&str> {
        self.shared.frames.fetch_add(1, Ordering::Relaxed);
        self.shared.why.get().map(String::as_str)
    }

    /// Runs `run`. Returns `None` if it panicked because the device is lost: the toolkit panics if that happens
    /// within a frame, before the window can check. Such a panic is not printed; any other one continues.
    pub(super) fn or_panic<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        let say = Arc::new(std::panic::take_hook());
        let (loss, say_too) = (self.clone(), say.clone());
        std::panic::set_hook(Box::new(move |panic| {
            if loss.shared.why.get().is_none() {
                say_too(panic);
            }
        }));
        let ran = std::panic::catch_unwind(AssertUnwindSafe(run));
        // Drops the hook above.
        drop(std::panic::take_hook());
        if let Ok(say) = Arc::try_unwrap(say) {
            std::panic::set_hook(say);
        }
        match ran {
            Ok(ran) => Some(ran),
            Err(_) if self.shared.why.get().is_some() => None,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// The action for a frame without a surface.
    pub(super) fn surface_status(&self, status: &CurrentSurfaceTexture) -> SurfaceErrorAction {
        match status {
            CurrentSurfaceTexture::Outdated => SurfaceErrorAction::Reconfigure,
            CurrentSurfaceTexture::Lost => {
                if self.fails() >= LOST_IN_A_ROW {
                    self.note("the window's surface was lost and cannot be restored");
                }
                SurfaceErrorAction::RecreateSurface
            }
            // The same request was valid a frame ago, so the device is lost, and reports it only later.
            CurrentSurfaceTexture::Validation => {
                self.note("it gives no more pictures");
                SurfaceErrorAction::SkipFrame
            }
            // Hidden, or late.
            _ => SurfaceErrorAction::SkipFrame,
        }
    }

    fn note(&self, why: &str) {
        let line =
            why.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("the driver gave no reason");
        // The first reason is the cause, later ones are its consequences.
        let _ = self.shared.why.set(line.to_owned());
    }

    /// Number of failed frames in a row, including this one.
    fn fails(&self) -> u32 {
        let shared = &self.shared;
        let now = shared.frames.load(Ordering::Relaxed);
        let before = shared.failed_at.swap(now, Ordering::Relaxed);
        let in_a_row =
            if now.wrapping_sub(before) <= 1 { shared.failed.load(Ordering::Relaxed) + 1 } else { 1 };
        shared.failed.store(in_a_row, Ordering::Relaxed);
        in_a_row
    }
}

/// A second of frames: plugging in a screen loses the surface for a few.
const LOST_IN_A_ROW: u32 = 60;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use egui_kittest::wgpu::{create_render_state, default_wgpu_setup};

    use super::*;

    fn state() -> Option<egui_wgpu::RenderState> {
        super::super::tests::has_software_vulkan()
            .then(|| create_render_state(default_wgpu_setup(), egui_wgpu::RendererOptions::PREDICTABLE))
    }

    #[test]
    fn a_device_that_is_gone_is_noticed_and_nothing_panics() {
        let Some(egui_wgpu::RenderState { device, queue, .. }) = state() else {
            eprintln!("skipped: no software Vulkan adapter here (Debian: mesa-vulkan-drivers)");
            return;
        };
        let (loss, woken) = (DeviceLoss::default(), Arc::new(AtomicBool::new(false)));
        let wake = woken.clone();
        loss.watch(&device, move || wake.store(true, Ordering::Relaxed));
        assert!(loss.why().is_none());
        device.destroy();
        // Any use of it from here on fails.
        let _ = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: 64,
            usage: wgpu::BufferUsages::VERTEX,
            mapped_at_creation: false,
        });
        queue.submit([]);
        let _ = device.poll(wgpu::PollType::Poll);
        assert!(loss.why().is_some_and(|why| !why.is_empty() && !why.contains('\n')), "{loss:?}");
        assert!(woken.load(Ordering::Relaxed), "the window was woken");
    }

    #[test]
    fn a_panic_is_forgiven_where_the_device_is_gone_and_nowhere_else() {
        let loss = DeviceLoss::default();
        assert_eq!(loss.or_panic(|| 7), Some(7));
        let other = std::panic::catch_unwind(AssertUnwindSafe(|| loss.or_panic(|| panic!("a mistake"))));
        assert!(other.is_err());
        let gone = loss.clone();
        let ended = loss.or_panic(move || {
            gone.note("the GPU fell off the bus\nand more");
            panic!("no staging buffer")
        });
        assert_eq!(ended, None::<()>);
        assert_eq!(loss.why(), Some("the GPU fell off the bus"));
    }

    #[test]
    fn an_error_of_the_device_ends_the_window_instead_of_the_program() {
        let Some(egui_wgpu::RenderState { device, .. }) = state() else {
            eprintln!("skipped: no software Vulkan adapter here (Debian: mesa-vulkan-drivers)");
            return;
        };
        let loss = DeviceLoss::default();
        loss.watch(&device, || {});
        let _ = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::MAX / 2,
            usage: wgpu::BufferUsages::VERTEX,
            mapped_at_creation: false,
        });
        assert!(loss.why().is_some(), "{loss:?}");
    }

    #[test]
    fn a_surface_that_is_lost_for_a_moment_is_made_anew_and_one_that_stays_lost_is_given_up() {
        let loss = DeviceLoss::default();
        let frame = |status: &CurrentSurfaceTexture| {
            let is_lost = loss.why().is_some();
            (is_lost, matches!(loss.surface_status(status), SurfaceErrorAction::RecreateSurface))
        };
        for _ in 0..LOST_IN_A_ROW / 2 {
            assert_eq!(frame(&CurrentSurfaceTexture::Lost), (false, true));
        }
        // Good frames report nothing.
        (0..5).for_each(|_| assert!(loss.why().is_none()));
        for _ in 0..LOST_IN_A_ROW {
            assert_eq!(frame(&CurrentSurfaceTexture::Lost), (false, true));
        }
        assert!(loss.why().is_some());

        let loss = DeviceLoss::default();
        for status in [CurrentSurfaceTexture::Occluded, CurrentSurfaceTexture::Timeout] {
            assert!(
                matches!(loss.surface_status(&status), SurfaceErrorAction::SkipFrame) && loss.why().is_none()
            );
        }
        loss.surface_status(&CurrentSurfaceTexture::Validation);
        assert!(loss.why().is_some());
    }
}
