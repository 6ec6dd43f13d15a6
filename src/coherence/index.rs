//! An R-tree over the bounds of boxes: finds the few among many that may meet a query.
//!
//! Nodes live in an arena and name each other by number. Each node has up to [`FANOUT`] children,
//! and keeps their bounds axis by axis (all lows, then all highs), so that a query compares one row
//! after the other without a jump. Children of the lowest nodes are slots: the numbers that the
//! owner gives its boxes.
//!
//! What keeps it right: every node's entry in its parent covers the bounds of all boxes beneath it,
//! and `home` names the lowest node of each slot. Insertion widens the entries on its way down and
//! splits full nodes; removal narrows the entries on its way up and drops empty nodes. Nodes are
//! never joined. Instead, once there are more nodes than slots, [`Index::is_sparse`] says so and
//! the owner builds a new index, which takes as many removals as it costs insertions.

use std::ops::ControlFlow;

use super::bounds::{Bounds, FANOUT, Scale, best_cut};
use super::region::AXES_MAX;
use super::span::Span;

/// The parent of the root.
const NOWHERE: u32 = u32::MAX;

/// A node of the tree.
#[derive(Clone, Debug)]
struct Node {
    /// The node above, or [`NOWHERE`].
    parent: u32,
    /// 0 where the children are slots.
    height: u8,
    /// The number of children.
    len: u8,
    /// The first `len` are children.
    children: [u32; FANOUT],
}

/// One row of bounds: the same side on the same axis of all children. Missing children overlap
/// nothing.
type Row = [u32; FANOUT];

/// An R-tree over slots. See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// The number of axes of all boxes.
    axes: usize,
    /// How the bounds of boxes are kept.
    scale: Scale,
    /// The arena.
    nodes: Vec<Node>,
    /// For each node `2 * axes` rows: lows and highs of the first axis, of the second, and so on.
    rows: Vec<Row>,
    /// Nodes that are not in use.
    free: Vec<u32>,
    /// The node on top; there always is one.
    root: u32,
    /// The number of slots in the index.
    slots: usize,
    /// The lowest node of each slot.
    home: Vec<u32>,
}

impl Index {
    /// An index of nothing, for boxes with `axes` axes, at least one and at most six.
    #[must_use]
    pub(super) fn new(axes: usize, scale: Scale) -> Self {
        let axes = axes.min(AXES_MAX);
        let mut index = Self {
            axes,
            scale,
            nodes: Vec::new(),
            rows: Vec::new(),
            free: Vec::new(),
            root: 0,
            slots: 0,
            home: Vec::new(),
        };
        index.root = index.new_node(0, NOWHERE);
        index
    }

    /// Calls `found` with each slot whose bounds overlap those of `query`, until it breaks.
    pub(super) fn search(
        &self,
        query: &[Span],
        found: &mut impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.search_below(self.root, &Bounds::of(query, &self.scale), found)
    }

    /// The search below one node. As deep as the tree is high.
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
    /// `low < end` and `start < high`, as the signs of differences (see [`Bounds`]).
    fn overlapping(&self, node: u32, query: &Bounds) -> u32 {
        let from = self.row(node);
        let mut signs = [u32::MAX; FANOUT];
        for (axis, pair) in
            self.rows[from..from + 2 * self.axes].chunks_exact(2).enumerate().take(AXES_MAX)
        {
            let (start, end) = (query.low[axis], query.high[axis]);
            for child in 0..FANOUT {
                signs[child] &=
                    pair[0][child].wrapping_sub(end) & start.wrapping_sub(pair[1][child]);
            }
        }
        // The sign spread over all bits, and of these the bit of the child.
        let bit =
            |(child, sign): (usize, u32)| (sign.cast_signed() >> 31).cast_unsigned() & 1 << child;
        signs.into_iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
    }

    /// Adds a slot that is not in the index, with the box that has these spans.
    pub(super) fn insert(&mut self, slot: u32, spans: &[Span]) {
        let bounds = Bounds::of(spans, &self.scale);
        if self.home.len() <= slot as usize {
            self.home.resize(slot as usize + 1, NOWHERE);
        }
        self.slots += 1;
        let leaf = self.widen_to_leaf(&bounds);
        self.add(leaf, slot, &bounds);
    }

    /// Goes down to the node that takes a box with these bounds, and widens the entries on the way.
    fn widen_to_leaf(&mut self, bounds: &Bounds) -> u32 {
        let mut node = self.root;
        while self.nodes[node as usize].height > 0 {
            let at = self.cheapest_child(node, bounds);
            let widened = self.entry(node, at).union(bounds);
            self.set_entry(node, at, &widened);
            node = self.nodes[node as usize].children[at];
        }
        node
    }

    /// The child that grows least by taking these bounds; of equal ones the smallest.
    fn cheapest_child(&self, node: u32, bounds: &Bounds) -> usize {
        let cost = |at: &usize| {
            let entry = self.entry(node, *at);
            let margin = entry.margin(self.axes);
            (entry.union(bounds).margin(self.axes) - margin, margin)
        };
        (0..self.len(node)).min_by_key(cost).unwrap_or(0)
    }

    /// Adds a child to a node whose ancestors already cover it; splits nodes from there up as they
    /// are full.
    fn add(&mut self, mut node: u32, mut child: u32, bounds: &Bounds) {
        let mut bounds = *bounds;
        while self.len(node) == FANOUT {
            let (own, sibling, siblings) = self.split(node, child, &bounds);
            let parent = match self.nodes[node as usize].parent {
                NOWHERE => self.grow_root(node, &own),
                parent => parent,
            };
            let at = self.position(parent, node);
            self.set_entry(parent, at, &own);
            (node, child, bounds) = (parent, sibling, siblings);
        }
        self.push(node, child, &bounds);
    }

    /// Puts a new root above the old one, which has these bounds.
    fn grow_root(&mut self, old: u32, bounds: &Bounds) -> u32 {
        let height = self.nodes[old as usize].height.saturating_add(1);
        self.root = self.new_node(height, NOWHERE);
        self.push(self.root, old, bounds);
        self.root
    }

    /// Distributes the children of a full node and one more to it and a new sibling.
    /// Returns the node's bounds, the sibling and its bounds.
    fn split(&mut self, node: u32, child: u32, bounds: &Bounds) -> (Bounds, u32, Bounds) {
        let mut entries = [(child, *bounds); FANOUT + 1];
        for (at, entry) in entries.iter_mut().enumerate().take(FANOUT) {
            *entry = (self.nodes[node as usize].children[at], self.entry(node, at));
        }
        let cut = best_cut(&mut entries, self.axes);
        let sibling =
            self.new_node(self.nodes[node as usize].height, self.nodes[node as usize].parent);
        self.clear(node);
        let own = self.push_all(node, &entries[..cut]);
        let siblings = self.push_all(sibling, &entries[cut..]);
        (own, sibling, siblings)
    }

    /// Adds children to a node with room for them; returns their bounds.
    fn push_all(&mut self, node: u32, entries: &[(u32, Bounds)]) -> Bounds {
        entries.iter().fold(Bounds::NOTHING, |union, (child, bounds)| {
            self.push(node, *child, bounds);
            union.union(bounds)
        })
    }

    /// Adds a child to a node with room for it.
    fn push(&mut self, node: u32, child: u32, bounds: &Bounds) {
        let at = self.len(node);
        self.nodes[node as usize].children[at] = child;
        self.nodes[node as usize].len += 1;
        self.set_entry(node, at, bounds);
        if self.nodes[node as usize].height == 0 {
            self.home[child as usize] = node;
        } else {
            self.nodes[child as usize].parent = node;
        }
    }

    /// Removes a slot; one that is not in the index stays out.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(home) = self.home.get_mut(slot as usize) else { return };
        let node = std::mem::replace(home, NOWHERE);
        if node == NOWHERE {
            return;
        }
        self.slots -= 1;
        self.detach(node, slot);
        self.shrink_root();
    }

    /// Takes a child from a node, drops the nodes that this leaves empty, and narrows the entries
    /// above.
    fn detach(&mut self, mut node: u32, mut child: u32) {
        loop {
            let at = self.position(node, child);
            self.swap_remove(node, at);
            if self.len(node) > 0 || node == self.root {
                break;
            }
            self.free.push(node);
            (node, child) = (self.nodes[node as usize].parent, node);
        }
        self.narrow_above(node);
    }

    /// Makes the entries above `node` tight again, as far up as anything changes.
    fn narrow_above(&mut self, mut node: u32) {
        while node != self.root {
            let parent = self.nodes[node as usize].parent;
            let at = self.position(parent, node);
            let tight = self.bounds(node);
            let old = self.entry(parent, at);
            if old == tight {
                return;
            }
            self.set_entry(parent, at, &tight);
            node = parent;
        }
    }

    /// Drops roots with one child; an empty tree is one lowest node.
    fn shrink_root(&mut self) {
        while self.nodes[self.root as usize].height > 0 && self.len(self.root) <= 1 {
            if self.len(self.root) == 0 {
                self.nodes[self.root as usize].height = 0;
                return;
            }
            self.free.push(self.root);
            self.root = self.nodes[self.root as usize].children[0];
            self.nodes[self.root as usize].parent = NOWHERE;
        }
    }

    /// Removes a child; the last takes its position.
    fn swap_remove(&mut self, node: u32, at: usize) {
        let last = self.len(node) - 1;
        let moved = self.entry(node, last);
        self.set_entry(node, at, &moved);
        self.set_entry(node, last, &Bounds::NOTHING);
        self.nodes[node as usize].children.swap(at, last);
        self.nodes[node as usize].len -= 1;
    }

    /// True if the scale is right for this box; the search is slow for others.
    #[must_use]
    pub(super) fn can_access_peer(&self, spans: &[Span]) -> bool {
        self.scale.can_access_peer(spans)
    }

    /// True if the tree has become so thin that a new one is worth its cost.
    #[must_use]
    pub(super) const fn is_sparse(&self) -> bool {
        self.nodes.len() - self.free.len() > self.slots + 16
    }

    /// The heap that the index takes.
    #[must_use]
    pub(super) const fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.rows.capacity() * size_of::<Row>()
            + (self.free.capacity() + self.home.capacity()) * size_of::<u32>()
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
        for at in 0..FANOUT {
            self.set_entry(node, at, &Bounds::NOTHING);
        }
    }

    /// The number of children.
    fn len(&self, node: u32) -> usize {
        usize::from(self.nodes[node as usize].len)
    }

    /// Where `child` stands in its parent.
    fn position(&self, parent: u32, child: u32) -> usize {
        let node = &self.nodes[parent as usize];
        node.children[..usize::from(node.len)]
            .iter()
            .position(|other| *other == child)
            .unwrap_or_else(|| {
                debug_assert!(false, "node {parent} has no child {child}");
                0
            })
    }

    /// The first row of a node.
    const fn row(&self, node: u32) -> usize {
        node as usize * 2 * self.axes
    }

    /// The bounds of a child, as its parent keeps them.
    fn entry(&self, node: u32, at: usize) -> Bounds {
        let mut bounds = Bounds::NOTHING;
        let row = self.row(node);
        for axis in 0..self.axes {
            bounds.low[axis] = self.rows[row + 2 * axis][at];
            bounds.high[axis] = self.rows[row + 2 * axis + 1][at];
        }
        bounds
    }

    /// Writes the bounds of a child.
    fn set_entry(&mut self, node: u32, at: usize, bounds: &Bounds) {
        let row = self.row(node);
        for axis in 0..self.axes {
            self.rows[row + 2 * axis][at] = bounds.low[axis];
            self.rows[row + 2 * axis + 1][at] = bounds.high[axis];
        }
    }

    /// The bounds of all children.
    fn bounds(&self, node: u32) -> Bounds {
        (0..self.len(node)).fold(Bounds::NOTHING, |union, at| union.union(&self.entry(node, at)))
    }
}

#[cfg(test)]
impl Index {
    /// Checks all that the module's documentation promises; `spans` gives the box of a slot that
    /// must be here.
    pub(super) fn assert_sound<'a>(&self, slots: usize, spans: impl Fn(u32) -> &'a [Span]) {
        assert_eq!(self.slots, slots);
        assert_eq!(self.nodes[self.root as usize].parent, NOWHERE);
        let mut found = Vec::new();
        let nodes = self.assert_sound_below(self.root, &spans, &mut found);
        assert_eq!(nodes, self.nodes.len() - self.free.len(), "nodes that nobody owns");
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), slots);
        assert_eq!(self.home.iter().filter(|home| **home != NOWHERE).count(), slots);
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
                assert_eq!(entry, Bounds::NOTHING);
            } else if height == 0 {
                assert_eq!(self.home[child as usize], node);
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
