//! The kernels. Signatures declare what kernels read and write, and requirements relate the shapes
//! of the arguments.

use resident::ndarray::{Ix2, Ix3};
use resident::{CudaSource, In, InOut, Kernel, Out, Signature};

use super::bodies;

/// The widest blur that a launch accepts, in pixels. The blur reads three times as many pixels on
/// each side.
pub const SIGMA_MAX: f32 = 64.0;

type Grey = Kernel<(In<u8, Ix3>, Out<f32, Ix2>)>;
type Blur = Kernel<(f32, In<f32, Ix2>, Out<f32, Ix2>)>;
type Sobel = Kernel<(In<f32, Ix2>, Out<f32, Ix2>, Out<u8, Ix2>)>;
type Thin = Kernel<(In<f32, Ix2>, In<u8, Ix2>, Out<f32, Ix2>)>;
type Candidates = Kernel<(f32, In<f32, Ix2>, Out<u32, Ix2>)>;
type Unite = Kernel<(InOut<u32, Ix2>,)>;
type Anchor = Kernel<(f32, In<f32, Ix2>, In<u32, Ix2>, InOut<u8, Ix2>)>;
type Keep = Kernel<(In<u32, Ix2>, In<u8, Ix2>, Out<u8, Ix2>)>;
type Overlay = Kernel<(In<u8, Ix3>, In<u8, Ix2>, Out<u8, Ix3>)>;

/// All kernels of the edge detector, created once and launched for each photograph.
pub struct Kernels {
    pub grey: Grey,
    pub blur_rows: Blur,
    pub blur_columns: Blur,
    pub sobel: Sobel,
    pub thin: Thin,
    pub candidates: Candidates,
    pub unite: Unite,
    pub anchor: Anchor,
    pub keep: Keep,
    pub overlay: Overlay,
}

impl Kernels {
    pub fn new() -> Self {
        let blur_rows = blur("blur_rows")
            .host(|_grid, (sigma, source, target)| bodies::blur_rows(sigma, source, target));
        let blur_columns = blur("blur_columns")
            .host(|_grid, (sigma, source, target)| bodies::blur_columns(sigma, source, target));
        Self {
            grey: with_cuda_body(grey()),
            blur_rows: with_cuda_body(blur_rows),
            blur_columns: with_cuda_body(blur_columns),
            sobel: with_cuda_body(sobel()),
            thin: with_cuda_body(thin()),
            candidates: with_cuda_body(candidates()),
            unite: with_cuda_body(
                Unite::new("unite").host(|_grid, (labels,)| bodies::unite(labels)),
            ),
            anchor: with_cuda_body(anchor()),
            keep: with_cuda_body(keep()),
            overlay: with_cuda_body(overlay()),
        }
    }
}

/// Adds the CUDA body to one of the kernels above.
fn with_cuda_body<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // Each product and each sum is rounded, as on the host.
    let source = CudaSource::c(include_str!("kernels.cu")).option("--fmad=false");
    // SAFETY: each function in `kernels.cu` has the signature of the kernel with the same name. A
    // function accesses only elements inside its views: it checks indices against the shape of one
    // view, and the requirements relate the other shapes to that shape. A label is followed only to
    // a smaller one, within the view.
    unsafe { kernel.cuda(source) }
}

fn grey() -> Grey {
    Grey::new("grey")
        .require("the photograph has three channels", |_grid, (photo, _)| photo.shape()[2] == 3)
        .require("photograph and result have one size", |_grid, (photo, grey)| {
            photo.shape()[..2] == grey.shape()[..]
        })
        .host(|_grid, (photo, grey)| bodies::grey(photo, grey))
}

/// Both halves of the blur have the same requirements and differ only in their bodies.
fn blur(name: &str) -> Blur {
    Blur::new(name)
        .require("sigma is between 0 and 64", |_grid, (sigma, _, _)| {
            (0.0..=SIGMA_MAX).contains(&sigma)
        })
        .require("source and target have one shape", |_grid, (_, source, target)| {
            source.shape() == target.shape()
        })
}

fn sobel() -> Sobel {
    Sobel::new("sobel")
        .require("strength has the shape of the picture", |_grid, (soft, strength, _)| {
            soft.shape() == strength.shape()
        })
        .require("direction has the shape of the picture", |_grid, (soft, _, direction)| {
            soft.shape() == direction.shape()
        })
        .host(|_grid, (soft, strength, direction)| bodies::sobel(soft, strength, direction))
}

fn thin() -> Thin {
    Thin::new("thin")
        .require("strength and direction have one shape", |_grid, (strength, direction, _)| {
            strength.shape() == direction.shape()
        })
        .require("strength and ridges have one shape", |_grid, (strength, _, ridges)| {
            strength.shape() == ridges.shape()
        })
        .host(|_grid, (strength, direction, ridges)| bodies::thin(strength, direction, ridges))
}

fn candidates() -> Candidates {
    Candidates::new("candidates")
        .require("ridges and labels have one shape", |_grid, (_, ridges, labels)| {
            ridges.shape() == labels.shape()
        })
        .require("32 bits can count the pixels", |_grid, (_, _, labels)| {
            labels.len() < bodies::NO_LABEL as usize
        })
        .host(|_grid, (low, ridges, labels)| bodies::candidates(low, ridges, labels))
}

fn anchor() -> Anchor {
    Anchor::new("anchor")
        .require("ridges and labels have one shape", |_grid, (_, ridges, labels, _)| {
            ridges.shape() == labels.shape()
        })
        .require("labels and anchors have one shape", |_grid, (_, _, labels, anchored)| {
            labels.shape() == anchored.shape()
        })
        .host(|_grid, (high, ridges, labels, anchored)| {
            bodies::anchor(high, ridges, labels, anchored);
        })
}

fn keep() -> Keep {
    Keep::new("keep")
        .require("labels and anchors have one shape", |_grid, (labels, anchored, _)| {
            labels.shape() == anchored.shape()
        })
        .require("labels and edges have one shape", |_grid, (labels, _, edges)| {
            labels.shape() == edges.shape()
        })
        .host(|_grid, (labels, anchored, edges)| bodies::keep(labels, anchored, edges))
}

fn overlay() -> Overlay {
    Overlay::new("overlay")
        .require("the photograph has three channels", |_grid, (photo, _, _)| photo.shape()[2] == 3)
        .require("photograph and edges have one size", |_grid, (photo, edges, _)| {
            photo.shape()[..2] == edges.shape()[..]
        })
        .require("photograph and overlay have one shape", |_grid, (photo, _, overlay)| {
            photo.shape() == overlay.shape()
        })
        .host(|_grid, (photo, edges, overlay)| bodies::overlay(photo, edges, overlay))
}
