//! An R-tree over the bounds of boxes: finds, among many boxes, the few that may overlap a query.
//!
//! Nodes are stored in an arena and refer to each other by number. A node has up to [`FANOUT`]
//! children. It stores their bounds axis by axis (all lower bounds, then all upper bounds), so that
//! a query compares one row (a bound of all children) after another, without branches. The children
//! of a leaf are slots: the numbers by which the box store identifies its boxes.
//!
//! Invariants: the bounds that a parent stores for a node are the union of the bounds of all boxes
//! below the node, and `leaf_of_slot` contains the leaf of each slot. Insertion goes from the root
//! to a leaf, widens the stored bounds, and splits full nodes. Removal goes from the leaf to the
//! root, narrows the stored bounds, and frees empty nodes. Nodes are never merged. Instead,
//! [`RTree::is_sparse`] returns true if nodes outnumber slots, and the box store builds a new tree.
//! Building it takes no more insertions than there were removals before.

use std::ops::ControlFlow;

use super::bounds::{Bounds, Entries, FANOUT, Scale, best_split};
use crate::coherence::region::AXES_MAX;
use crate::coherence::span::Span;

/// The number that means "no node": the parent of the root, and the leaf of a slot that is not in
/// the tree.
const NO_NODE: u32 = u32::MAX;

/// A node of the tree.
#[derive(Clone, Debug)]
struct Node {
    /// The parent, or [`NO_NODE`].
    parent: u32,
    /// 0 for a leaf.
    height: u8,
    /// The number of children.
    len: u8,
    /// The children; the first `len` entries are in use.
    children: [u32; FANOUT],
}

/// The lower or upper bounds of all children along one axis. Unused entries overlap no query.
type Row = [u32; FANOUT];

/// An R-tree over slots. See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct RTree {
    /// The number of axes of all boxes.
    axes: usize,
    /// Converts indices to coordinates.
    scale: Scale,
    /// The arena.
    nodes: Vec<Node>,
    /// For each node `2 * axes` rows: lower and upper bounds along the first axis, the second, ...
    rows: Vec<Row>,
    /// Unused nodes.
    free: Vec<u32>,
    /// The root; an empty tree is one leaf.
    root: u32,
    /// The number of slots in the tree.
    slots: usize,
    /// The leaf of each slot.
    leaf_of_slot: Vec<u32>,
}

impl RTree {
    /// An empty tree for boxes with `axes` axes, at least one and at most six.
    #[must_use]
    pub(super) fn new(axes: usize, scale: Scale) -> Self {
        let axes = axes.min(AXES_MAX);
        let mut tree = Self {
            axes,
            scale,
            nodes: Vec::new(),
            rows: Vec::new(),
            free: Vec::new(),
            root: 0,
            slots: 0,
            leaf_of_slot: Vec::new(),
        };
        tree.root = tree.new_node(0, NO_NODE);
        tree
    }

    /// Calls `found` with each slot whose bounds overlap the bounds of `query`, until `found`
    /// returns `Break`.
    pub(super) fn search(
        &self,
        query: &[Span],
        found: &mut impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.search_below(self.root, &Bounds::of(query, &self.scale), found)
    }

    /// Searches below one node. The depth of the recursion is the height of the tree.
    fn search_below(
        &self,
        node: u32,
        query: &Bounds,
        found: &mut impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Node { height, children, .. } = &self.nodes[node as usize];
        let mut overlapping = self.overlapping(node, query);
        while overlapping != 0 {
            let child = children[overlapping.trailing_zeros() as usize % FANOUT];
            overlapping &= overlapping - 1;
            if *height == 0 {
                found(child)?;
            } else {
                self.search_below(child, query, found)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// One bit for each child of `node` whose bounds overlap `query`.
    ///
    /// Tests `low < end` and `start < high` on each axis by the signs of differences (see
    /// [`Bounds`]).
    fn overlapping(&self, node: u32, query: &Bounds) -> u32 {
        self.children_where(node, query, |[low, high], [start, end]| {
            low.wrapping_sub(end) & start.wrapping_sub(high)
        })
    }

    /// One bit for each child of `node` whose bounds contain `bounds`: neither `start < low` nor
    /// `high < end` on any axis.
    fn containing(&self, node: u32, bounds: &Bounds) -> u32 {
        self.children_where(node, bounds, |[low, high], [start, end]| {
            !(start.wrapping_sub(low) | high.wrapping_sub(end))
        })
    }

    /// One bit for each child of `node` for which `sign`, called with the child's bounds along an
    /// axis and the others, returns a number with the sign bit on every axis.
    #[inline]
    fn children_where(
        &self,
        node: u32,
        others: &Bounds,
        sign: impl Fn([u32; 2], [u32; 2]) -> u32,
    ) -> u32 {
        let from = self.row(node);
        let mut signs = [u32::MAX; FANOUT];
        for (axis, pair) in
            self.rows[from..from + 2 * self.axes].chunks_exact(2).enumerate().take(AXES_MAX)
        {
            let other = [others.low[axis], others.high[axis]];
            for child in 0..FANOUT {
                signs[child] &= sign([pair[0][child], pair[1][child]], other);
            }
        }
        // The shift copies the sign to all bits, and the mask keeps the bit of the child.
        let bit =
            |(child, sign): (usize, u32)| (sign.cast_signed() >> 31).cast_unsigned() & 1 << child;
        signs.into_iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
    }

    /// Adds a slot that is not in the tree, for the box that has these spans.
    pub(super) fn insert(&mut self, slot: u32, spans: &[Span]) {
        let bounds = Bounds::of(spans, &self.scale);
        if self.leaf_of_slot.len() <= slot as usize {
            self.leaf_of_slot.resize(slot as usize + 1, NO_NODE);
        }
        self.slots += 1;
        let leaf = self.choose_leaf(&bounds);
        self.add(leaf, slot, &bounds);
    }

    /// Chooses the leaf for a box with these bounds, and widens the stored bounds on the path to
    /// it, unless they contain the box.
    fn choose_leaf(&mut self, bounds: &Bounds) -> u32 {
        let mut node = self.root;
        while self.nodes[node as usize].height > 0 {
            // Leaves are so small that few boxes are inside one before they are in it.
            let are_leaves = self.nodes[node as usize].height == 1;
            let containing = if are_leaves { 0 } else { self.containing(node, bounds) };
            let mut at = containing.trailing_zeros() as usize;
            if containing == 0 {
                at = self.cheapest_child(node, bounds);
                self.widen(node, at, bounds);
            }
            node = self.nodes[node as usize].children[at % FANOUT];
        }
        node
    }

    /// Widens the bounds of a child so that they contain these.
    fn widen(&mut self, node: u32, at: usize, bounds: &Bounds) {
        let from = self.row(node);
        let rows = self.rows[from..from + 2 * self.axes].chunks_exact_mut(2);
        for (axis, pair) in rows.enumerate().take(AXES_MAX) {
            pair[0][at] = pair[0][at].min(bounds.low[axis]);
            pair[1][at] = pair[1][at].max(bounds.high[axis]);
        }
    }

    /// The child whose margin grows least if these bounds are added; of equal ones, the child with
    /// the smallest margin. Margins are rounded, which is good enough for a choice, so that SIMD
    /// instructions compute several at once.
    fn cheapest_child(&self, node: u32, bounds: &Bounds) -> usize {
        let (mut growths, mut margins) = ([0_f32; FANOUT], [0_f32; FANOUT]);
        let from = self.row(node);
        let rows = self.rows[from..from + 2 * self.axes].chunks_exact(2);
        for (axis, pair) in rows.enumerate().take(AXES_MAX) {
            let (low, high) = (rounded(bounds.low[axis]), rounded(bounds.high[axis]));
            for child in 0..FANOUT {
                let (start, end) = (rounded(pair[0][child]), rounded(pair[1][child]));
                let margin = end - start;
                growths[child] += end.max(high) - start.min(low) - margin;
                margins[child] += margin;
            }
        }
        // Neither is negative, so the bits are ordered as the numbers are.
        let cost = |child: &usize| {
            let (growth, margin) = (growths[*child].to_bits(), margins[*child].to_bits());
            u64::from(growth) << u32::BITS | u64::from(margin)
        };
        (0..self.len(node).min(FANOUT)).min_by_key(cost).unwrap_or(0)
    }

    /// Adds a child to a node whose stored bounds already contain the child's bounds. Splits the
    /// node and its ancestors if they are full.
    fn add(&mut self, mut node: u32, mut child: u32, bounds: &Bounds) {
        let mut bounds = *bounds;
        while self.len(node) == FANOUT {
            let (own, sibling, siblings) = self.split(node, child, &bounds);
            let parent = match self.nodes[node as usize].parent {
                NO_NODE => self.grow_root(node, &own),
                parent => parent,
            };
            let at = self.child_index(parent, node);
            self.set_entry(parent, at, &own);
            (node, child, bounds) = (parent, sibling, siblings);
        }
        self.push(node, child, &bounds);
    }

    /// Adds a new root above the old root, which has these bounds.
    fn grow_root(&mut self, old: u32, bounds: &Bounds) -> u32 {
        let height = self.nodes[old as usize].height.saturating_add(1);
        self.root = self.new_node(height, NO_NODE);
        self.push(self.root, old, bounds);
        self.root
    }

    /// Distributes the children of a full node and one more between it and a new sibling.
    /// Returns the bounds of the node, the sibling, and its bounds.
    fn split(&mut self, node: u32, child: u32, bounds: &Bounds) -> (Bounds, u32, Bounds) {
        let mut entries = [(child, *bounds); FANOUT + 1];
        for (at, entry) in entries.iter_mut().enumerate().take(FANOUT) {
            *entry = (self.nodes[node as usize].children[at], self.entry(node, at));
        }
        let (places, split) = best_split(&entries, self.axes);
        let sibling =
            self.new_node(self.nodes[node as usize].height, self.nodes[node as usize].parent);
        self.clear(node);
        let own = self.push_all(node, &entries, &places[..split]);
        let siblings = self.push_all(sibling, &entries, &places[split..]);
        (own, sibling, siblings)
    }

    /// Adds the children at these places to a node that has space for them; returns their bounds.
    fn push_all(&mut self, node: u32, entries: &Entries, places: &[u8]) -> Bounds {
        let added = places.iter().map(|place| &entries[usize::from(*place)]);
        added.fold(Bounds::EMPTY, |union, (child, bounds)| {
            self.push(node, *child, bounds);
            union.union(bounds)
        })
    }

    /// Adds a child to a node that has space for it.
    fn push(&mut self, node: u32, child: u32, bounds: &Bounds) {
        let at = self.len(node);
        self.nodes[node as usize].children[at] = child;
        self.nodes[node as usize].len += 1;
        self.set_entry(node, at, bounds);
        if self.nodes[node as usize].height == 0 {
            self.leaf_of_slot[child as usize] = node;
        } else {
            self.nodes[child as usize].parent = node;
        }
    }

    /// Removes a slot, if it is in the tree.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(leaf) = self.leaf_of_slot.get_mut(slot as usize) else { return };
        let node = std::mem::replace(leaf, NO_NODE);
        if node == NO_NODE {
            return;
        }
        self.slots -= 1;
        self.detach(node, slot);
        self.shrink_root();
    }

    /// Removes a child from a node, frees the nodes that become empty, and narrows the bounds
    /// stored in the ancestors.
    fn detach(&mut self, mut node: u32, mut child: u32) {
        let removed = loop {
            let at = self.child_index(node, child);
            let removed = self.entry(node, at);
            self.swap_remove(node, at);
            if self.len(node) > 0 || node == self.root {
                break removed;
            }
            self.free.push(node);
            (node, child) = (self.nodes[node as usize].parent, node);
        };
        self.narrow_above(node, &removed);
    }

    /// Recomputes the bounds stored in the ancestors of `node`, from which a child with the bounds
    /// `removed` was removed, up to the first that do not change.
    fn narrow_above(&mut self, mut node: u32, removed: &Bounds) {
        while node != self.root {
            let parent = self.nodes[node as usize].parent;
            let at = self.child_index(parent, node);
            let old = self.entry(parent, at);
            if old.contains_inside(removed, self.axes) {
                return;
            }
            let tight = self.bounds(node);
            if old == tight {
                return;
            }
            self.set_entry(parent, at, &tight);
            node = parent;
        }
    }

    /// Removes roots that have one child; makes an empty root a leaf.
    fn shrink_root(&mut self) {
        while self.nodes[self.root as usize].height > 0 && self.len(self.root) <= 1 {
            if self.len(self.root) == 0 {
                self.nodes[self.root as usize].height = 0;
                return;
            }
            self.free.push(self.root);
            self.root = self.nodes[self.root as usize].children[0];
            self.nodes[self.root as usize].parent = NO_NODE;
        }
    }

    /// Removes a child; the last child gets its index.
    fn swap_remove(&mut self, node: u32, at: usize) {
        let last = self.len(node) - 1;
        let moved = self.entry(node, last);
        self.set_entry(node, at, &moved);
        self.set_entry(node, last, &Bounds::EMPTY);
        self.nodes[node as usize].children.swap(at, last);
        self.nodes[node as usize].len -= 1;
    }

    /// Whether the coordinates can represent this box; a search for a box that they cannot
    /// represent is slow.
    #[must_use]
    pub(super) fn can_represent(&self, spans: &[Span]) -> bool {
        self.scale.can_represent(spans)
    }

    /// Whether so many nodes are almost empty that a new tree is worth its cost.
    #[must_use]
    pub(super) const fn is_sparse(&self) -> bool {
        self.nodes.len() - self.free.len() > self.slots + 16
    }

    /// A node without children.
    fn new_node(&mut self, height: u8, parent: u32) -> u32 {
        let node = Node { parent, height, len: 0, children: [0; FANOUT] };
        if let Some(reused) = self.free.pop() {
            self.nodes[reused as usize] = node;
            self.clear(reused);
            return reused;
        }
        self.nodes.push(node);
        let number = self.nodes.len() as u32 - 1;
        self.rows.resize(self.nodes.len() * 2 * self.axes, [0; FANOUT]);
        self.clear(number);
        number
    }

    /// Removes all children.
    fn clear(&mut self, node: u32) {
        self.nodes[node as usize].len = 0;
        let from = self.row(node);
        for (axis, pair) in self.rows[from..from + 2 * self.axes].chunks_exact_mut(2).enumerate() {
            pair[0] = [Bounds::EMPTY.low[axis]; FANOUT];
            pair[1] = [Bounds::EMPTY.high[axis]; FANOUT];
        }
    }

    /// The number of children.
    fn len(&self, node: u32) -> usize {
        usize::from(self.nodes[node as usize].len)
    }

    /// The index of `child` in its parent.
    fn child_index(&self, parent: u32, child: u32) -> usize {
        let node = &self.nodes[parent as usize];
        node.children[..usize::from(node.len)]
            .iter()
            .position(|other| *other == child)
            .unwrap_or_else(|| {
                debug_assert!(false, "node {parent} has no child {child}");
                0
            })
    }

    /// The index of the first row of a node.
    const fn row(&self, node: u32) -> usize {
        node as usize * 2 * self.axes
    }

    /// The bounds of a child, from its parent's rows.
    fn entry(&self, node: u32, at: usize) -> Bounds {
        let mut bounds = Bounds::EMPTY;
        let row = self.row(node);
        for axis in 0..self.axes {
            bounds.low[axis] = self.rows[row + 2 * axis][at];
            bounds.high[axis] = self.rows[row + 2 * axis + 1][at];
        }
        bounds
    }

    /// Sets the bounds of a child in its parent's rows.
    fn set_entry(&mut self, node: u32, at: usize, bounds: &Bounds) {
        let row = self.row(node);
        for axis in 0..self.axes {
            self.rows[row + 2 * axis][at] = bounds.low[axis];
            self.rows[row + 2 * axis + 1][at] = bounds.high[axis];
        }
    }

    /// The union of the bounds of all children. Unused entries are neutral.
    fn bounds(&self, node: u32) -> Bounds {
        let mut bounds = Bounds::EMPTY;
        let from = self.row(node);
        let rows = self.rows[from..from + 2 * self.axes].chunks_exact(2);
        for (axis, pair) in rows.enumerate().take(AXES_MAX) {
            bounds.low[axis] = pair[0].iter().fold(bounds.low[axis], |low, next| low.min(*next));
            bounds.high[axis] = pair[1].iter().fold(0, |high, next| high.max(*next));
        }
        bounds
    }
}

/// A coordinate as a floating-point number; coordinates have 31 bits.
#[inline]
fn rounded(coordinate: u32) -> f32 {
    coordinate.cast_signed() as f32
}

#[cfg(test)]
impl RTree {
    /// The heap bytes that the tree takes.
    pub(super) const fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.rows.capacity() * size_of::<Row>()
            + (self.free.capacity() + self.leaf_of_slot.capacity()) * size_of::<u32>()
    }

    /// Checks the invariants in the module's documentation; `spans` returns the box of a slot that
    /// the tree must contain.
    pub(super) fn assert_sound<'a>(&self, slots: usize, spans: impl Fn(u32) -> &'a [Span]) {
        assert_eq!(self.slots, slots);
        assert_eq!(self.nodes[self.root as usize].parent, NO_NODE);
        let mut found = Vec::new();
        let nodes = self.assert_sound_below(self.root, &spans, &mut found);
        assert_eq!(nodes, self.nodes.len() - self.free.len(), "nodes that have no parent");
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), slots);
        assert_eq!(self.leaf_of_slot.iter().filter(|leaf| **leaf != NO_NODE).count(), slots);
    }

    fn assert_sound_below<'a>(
        &self,
        node: u32,
        spans: &impl Fn(u32) -> &'a [Span],
        found: &mut Vec<u32>,
    ) -> usize {
        let Node { height, len, children, .. } = self.nodes[node as usize].clone();
        assert!(len > 0 || node == self.root);
        let mut nodes = 1;
        for (at, child) in children.into_iter().enumerate() {
            let entry = self.entry(node, at);
            if at >= usize::from(len) {
                assert_eq!(entry, Bounds::EMPTY);
            } else if height == 0 {
                assert_eq!(self.leaf_of_slot[child as usize], node);
                assert_eq!(entry, Bounds::of(spans(child), &self.scale));
                found.push(child);
            } else {
                assert_eq!(self.nodes[child as usize].parent, node);
                assert_eq!(self.nodes[child as usize].height + 1, height);
                assert_eq!(entry, self.bounds(child), "entry {at} of node {node} is not tight");
                nodes += self.assert_sound_below(child, spans, found);
            }
        }
        nodes
    }
}
