//! Thousands of upright rectangles per frame, instanced from one vertex buffer: a third of the cost of a mesh in software.

use std::collections::HashMap;

use bytemuck::{Pod, Zeroable};
use eframe::egui::{self, Color32};
use egui_wgpu::{Callback, CallbackResources, CallbackTrait, RenderState, ScreenDescriptor};

/// One rectangle, in physical pixels from the upper left corner of the area it is drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Quad {
    pub(super) x: [f32; 2],
    /// Upper and lower edge; drawn smooth.
    pub(super) y: [f32; 2],
    /// Premultiplied red, green, blue, alpha, as egui has them.
    pub(super) color: [u8; 4],
}

impl Quad {
    pub(super) fn new(left: f32, top: f32, right: f32, bottom: f32, color: Color32) -> Quad {
        Quad { x: [left, right], y: [top, bottom], color: color.to_array() }
    }
}

/// A shape that draws `quads` in `area`, whose `slot` identifies it from frame to frame.
pub(super) fn shape(slot: u64, area: egui::Rect, quads: Vec<Quad>) -> egui::Shape {
    Callback::new_paint_callback(area, QuadCallback { slot, quads }).into()
}

/// Makes the pipeline once, and keeps it with egui's renderer.
pub(super) fn prepare_gpu(state: &RenderState) {
    let gpu = Gpu::new(&state.device, state.target_format);
    state.renderer.write().callback_resources.insert(gpu);
}

struct QuadCallback {
    slot: u64,
    quads: Vec<Quad>,
}

impl CallbackTrait for QuadCallback {
    fn prepare(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        _: &ScreenDescriptor,
        _: &mut wgpu::CommandEncoder,
        resources: &mut CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        if let Some(gpu) = resources.get_mut::<Gpu>() {
            gpu.upload(device, queue, self.slot, &self.quads);
        }
        Vec::new()
    }

    fn paint(
        &self,
        info: egui::PaintCallbackInfo,
        pass: &mut wgpu::RenderPass<'static>,
        resources: &CallbackResources,
    ) {
        let Some(gpu) = resources.get::<Gpu>() else { return };
        let area = info.viewport_in_pixels();
        gpu.draw(pass, self.slot, [area.width_px as f32, area.height_px as f32], self.quads.len());
    }
}

/// The resources on the GPU, kept from frame to frame.
struct Gpu {
    pipeline: wgpu::RenderPipeline,
    layout: wgpu::BindGroupLayout,
    slots: HashMap<u64, Slot>,
    queue: Option<wgpu::Queue>,
}

/// The buffers of one area of the screen.
struct Slot {
    screen: wgpu::Buffer,
    bind_group: wgpu::BindGroup,
    instances: wgpu::Buffer,
}

impl Gpu {
    fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Gpu {
        let module = device.create_shader_module(wgpu::include_wgsl!("quads.wgsl"));
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("quads"),
            entries: &[wgpu::BindGroupLayoutEntry {
                binding: 0,
                visibility: wgpu::ShaderStages::VERTEX,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Uniform,
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            }],
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("quads"),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let fragment = if format.is_srgb() { "fragment_linear" } else { "fragment_gamma" };
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("quads"),
            layout: Some(&pipeline_layout),
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("vertex"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[Some(wgpu::VertexBufferLayout {
                    array_stride: size_of::<Quad>() as u64,
                    step_mode: wgpu::VertexStepMode::Instance,
                    attributes: &wgpu::vertex_attr_array![0 => Float32x2, 1 => Float32x2, 2 => Unorm8x4],
                })],
            },
            primitive: wgpu::PrimitiveState {
                topology: wgpu::PrimitiveTopology::TriangleStrip,
                ..wgpu::PrimitiveState::default()
            },
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some(fragment),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                targets: &[Some(wgpu::ColorTargetState {
                    format,
                    blend: Some(wgpu::BlendState::PREMULTIPLIED_ALPHA_BLENDING),
                    write_mask: wgpu::ColorWrites::ALL,
                })],
            }),
            multiview_mask: None,
            cache: None,
        });
        Gpu { pipeline, layout, slots: HashMap::new(), queue: None }
    }

    fn upload(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, slot: u64, quads: &[Quad]) {
        let bytes: &[u8] = bytemuck::cast_slice(quads);
        let slot = self.slots.entry(slot).or_insert_with(|| Slot::new(device, &self.layout));
        if slot.instances.size() < bytes.len() as u64 {
            slot.instances = instance_buffer(device, quads.len().next_power_of_two());
        }
        queue.write_buffer(&slot.instances, 0, bytes);
        self.queue.get_or_insert_with(|| queue.clone());
    }

    fn draw(&self, pass: &mut wgpu::RenderPass<'static>, slot: u64, size: [f32; 2], quads: usize) {
        let (Some(slot), Some(queue)) = (self.slots.get(&slot), &self.queue) else { return };
        // Queued while the pass is recorded and executed before it is submitted: one size per slot and frame.
        queue.write_buffer(&slot.screen, 0, bytemuck::cast_slice(&[size[0], size[1], 0.0, 0.0]));
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &slot.bind_group, &[]);
        pass.set_vertex_buffer(0, slot.instances.slice(..));
        pass.draw(0..4, 0..quads as u32);
    }
}

impl Slot {
    fn new(device: &wgpu::Device, layout: &wgpu::BindGroupLayout) -> Slot {
        let screen = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("quads: screen"),
            size: 16,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("quads"),
            layout,
            entries: &[wgpu::BindGroupEntry { binding: 0, resource: screen.as_entire_binding() }],
        });
        Slot { screen, bind_group, instances: instance_buffer(device, QUADS_AT_FIRST) }
    }
}

fn instance_buffer(device: &wgpu::Device, quads: usize) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("quads: instances"),
        size: (quads * size_of::<Quad>()) as u64,
        usage: wgpu::BufferUsages::VERTEX | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

const QUADS_AT_FIRST: usize = 16_384;
