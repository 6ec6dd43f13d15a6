//! The words of an instruction: its opcode, its types, and what modifies it.

/// An enumeration whose values have names in PTX.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($word:literal => $value:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) enum $name { $($value,)* }

        impl $name {
            pub(crate) fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$value),)*
                    _ => None,
                }
            }
        }
    };
}

words! {
    Opcode {
        "mov" => Mov, "ld" => Ld, "ldu" => Ldu, "st" => St, "cvta" => Cvta,
        "isspacep" => Isspacep, "add" => Add, "addc" => Addc, "sub" => Sub, "subc" => Subc,
        "mul" => Mul, "mad" => Mad, "madc" => Madc, "mul24" => Mul24, "mad24" => Mad24,
        "sad" => Sad, "div" => Div, "rem" => Rem, "abs" => Abs, "neg" => Neg, "min" => Min,
        "max" => Max, "popc" => Popc, "clz" => Clz, "bfind" => Bfind, "fns" => Fns,
        "brev" => Brev, "bfe" => Bfe, "bfi" => Bfi, "bmsk" => Bmsk, "szext" => Szext,
        "dp4a" => Dp4a, "dp2a" => Dp2a, "fma" => Fma, "rcp" => Rcp, "sqrt" => Sqrt,
        "rsqrt" => Rsqrt, "sin" => Sin, "cos" => Cos, "lg2" => Lg2, "ex2" => Ex2,
        "tanh" => Tanh, "testp" => Testp, "copysign" => Copysign, "set" => Set, "setp" => Setp,
        "selp" => Selp, "slct" => Slct, "and" => And, "or" => Or, "xor" => Xor, "not" => Not,
        "cnot" => Cnot, "lop3" => Lop3, "shf" => Shf, "shl" => Shl, "shr" => Shr, "cvt" => Cvt,
        "prmt" => Prmt, "bra" => Bra, "brx" => Brx, "call" => Call, "ret" => Ret,
        "exit" => Exit, "trap" => Trap, "brkpt" => Brkpt, "bar" => Bar, "barrier" => Barrier,
        "membar" => Membar, "fence" => Fence, "nanosleep" => Nanosleep, "prefetch" => Prefetch,
        "prefetchu" => Prefetchu, "atom" => Atom, "red" => Red, "shfl" => Shfl, "vote" => Vote,
        "match" => Match, "redux" => Redux, "activemask" => Activemask,
    }
}

words! {
    /// What else an opcode does, or how.
    Mode {
        "eq" => Eq, "ne" => Ne, "lt" => Lt, "le" => Le, "gt" => Gt, "ge" => Ge, "lo" => Lo,
        "ls" => Ls, "hi" => Hi, "hs" => Hs, "equ" => Equ, "neu" => Neu, "ltu" => Ltu,
        "leu" => Leu, "gtu" => Gtu, "geu" => Geu, "num" => Num, "nan" => Nan, "and" => And,
        "or" => Or, "xor" => Xor, "add" => Add, "min" => Min, "max" => Max, "inc" => Inc,
        "dec" => Dec, "exch" => Exch, "cas" => Cas, "popc" => Popc, "up" => Up, "down" => Down,
        "bfly" => Bfly, "idx" => Idx, "all" => All, "any" => Any, "uni" => Uni,
        "ballot" => Ballot, "l" => Left, "r" => Right, "clamp" => Clamp, "wrap" => Wrap,
        "shiftamt" => ShiftAmount, "f4e" => F4e, "b4e" => B4e, "rc8" => Rc8, "ecl" => Ecl,
        "ecr" => Ecr, "rc16" => Rc16, "finite" => Finite, "infinite" => Infinite,
        "number" => Number, "notanumber" => NotANumber, "normal" => Normal,
        "subnormal" => Subnormal, "arrive" => Arrive, "warp" => Warp,
        "wide" => Wide,
        "cc" => Carry, "to" => To, "NaN" => PropagateNan, "relu" => Relu,
    }
}

words! {
    Space {
        "global" => Global, "shared" => Shared, "shared::cta" => SharedOfBlock, "local" => Local,
        "param" => Param, "param::entry" => ParamOfEntry, "param::func" => ParamOfFunction,
        "const" => Const,
    }
}

/// How a result that is not exact is rounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

words! {
    Type {
        "u8" => U8, "u16" => U16, "u32" => U32, "u64" => U64, "s8" => S8, "s16" => S16,
        "s32" => S32, "s64" => S64, "b8" => B8, "b16" => B16, "b32" => B32, "b64" => B64,
        "f16" => F16, "f16x2" => F16x2, "bf16" => Bf16, "bf16x2" => Bf16x2, "f32" => F32,
        "f64" => F64, "pred" => Pred,
    }
}

words! {
    Special {
        "%tid.x" => ThreadX, "%tid.y" => ThreadY, "%tid.z" => ThreadZ, "%ntid.x" => ThreadsX,
        "%ntid.y" => ThreadsY, "%ntid.z" => ThreadsZ, "%ctaid.x" => BlockX,
        "%ctaid.y" => BlockY, "%ctaid.z" => BlockZ, "%nctaid.x" => BlocksX,
        "%nctaid.y" => BlocksY, "%nctaid.z" => BlocksZ, "%laneid" => Lane, "%warpid" => Warp,
        "%nwarpid" => Warps, "%smid" => Processor, "%nsmid" => Processors, "%clock" => Clock,
        "%clock64" => Clock64, "%globaltimer" => Timer, "%lanemask_eq" => MaskEqual,
        "%lanemask_lt" => MaskBelow, "%lanemask_le" => MaskUpTo, "%lanemask_gt" => MaskAbove,
        "%lanemask_ge" => MaskFrom, "%dynamic_smem_size" => DynamicSharedBytes,
        "%total_smem_size" => SharedBytes,
    }
}

impl Space {
    /// The name of the memory, without who declared it.
    pub(crate) fn plain(self) -> Self {
        match self {
            Self::SharedOfBlock => Self::Shared,
            Self::ParamOfEntry | Self::ParamOfFunction => Self::Param,
            other => other,
        }
    }
}

impl Type {
    pub(crate) fn len_bytes(self) -> u64 {
        match self {
            Self::U8 | Self::S8 | Self::B8 | Self::Pred => 1,
            Self::U16 | Self::S16 | Self::B16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::S32 | Self::B32 | Self::F32 | Self::F16x2 | Self::Bf16x2 => 4,
            Self::U64 | Self::S64 | Self::B64 | Self::F64 => 8,
        }
    }

    pub(crate) fn bits(self) -> u32 {
        8 * self.len_bytes() as u32
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    pub(crate) fn is_float(self) -> bool {
        self.is_half() || matches!(self, Self::F32 | Self::F64)
    }

    /// Whether it has two bytes, alone or in a pair.
    pub(crate) fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::F16x2 | Self::Bf16 | Self::Bf16x2)
    }

    pub(crate) fn is_pair(self) -> bool {
        matches!(self, Self::F16x2 | Self::Bf16x2)
    }

    pub(crate) fn mask(self) -> u64 {
        match self {
            Self::Pred => 1,
            _ => u64::MAX >> (64 - self.bits()),
        }
    }

    /// The bits as a number of the type.
    pub(crate) fn number(self, bits: u64) -> i128 {
        let shift = 64 - self.bits();
        if self.is_signed() {
            i128::from((bits << shift) as i64 >> shift)
        } else {
            i128::from(bits & self.mask())
        }
    }

    /// The integer type with twice as many bits.
    pub(crate) fn twice(self) -> Option<Self> {
        match self {
            Self::U16 => Some(Self::U32),
            Self::S16 => Some(Self::S32),
            Self::U32 => Some(Self::U64),
            Self::S32 => Some(Self::S64),
            _ => None,
        }
    }
}
