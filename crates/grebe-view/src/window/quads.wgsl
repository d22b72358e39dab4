// One instance is one upright rectangle in pixels. Its upper and lower edge are smooth: a pixel row that the rectangle
// covers in part is drawn in part. Left and right edges lie on pixel borders.
struct Screen { size: vec2<f32>, padding: vec2<f32> };
@group(0) @binding(0) var<uniform> screen: Screen;

struct Quad {
    @location(0) x: vec2<f32>,
    @location(1) y: vec2<f32>,
    @location(2) color: vec4<f32>,
};
struct Corner {
    @builtin(position) position: vec4<f32>,
    @location(0) @interpolate(flat) edges: vec2<f32>,
    @location(1) @interpolate(flat) color: vec4<f32>,
    @location(2) y: f32,
};

@vertex
fn vertex(@builtin(vertex_index) index: u32, quad: Quad) -> Corner {
    let right = f32(index & 1u);
    let bottom = f32(index >> 1u);
    let pixel = vec2(mix(quad.x.x, quad.x.y, right), mix(floor(quad.y.x), ceil(quad.y.y), bottom));
    var corner: Corner;
    corner.position = vec4(pixel.x / screen.size.x * 2.0 - 1.0, 1.0 - pixel.y / screen.size.y * 2.0, 0.0, 1.0);
    corner.edges = quad.y;
    corner.color = quad.color;
    corner.y = pixel.y;
    return corner;
}

fn covered(corner: Corner) -> vec4<f32> {
    let row = floor(corner.y);
    let cover = min(corner.edges.y, row + 1.0) - max(corner.edges.x, row);
    return corner.color * clamp(cover, 0.0, 1.0);
}

@fragment
fn fragment_gamma(corner: Corner) -> @location(0) vec4<f32> {
    return covered(corner);
}

@fragment
fn fragment_linear(corner: Corner) -> @location(0) vec4<f32> {
    let color = covered(corner);
    let low = color.rgb / 12.92;
    let high = pow((color.rgb + 0.055) / 1.055, vec3(2.4));
    return vec4(select(high, low, color.rgb <= vec3(0.04045)), color.a);
}
