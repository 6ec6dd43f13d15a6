//! Puts addresses in the place of names, once all of the module is read.

use crate::Outcome;
use crate::module::{Base, FUNCTIONS_START, Instruction, Module, Operand};
use crate::words::Opcode;

pub(super) fn link(module: &mut Module) -> Outcome {
    let functions = module.names.iter().map(|(name, index)| {
        let address = FUNCTIONS_START + *index as u64;
        (name.clone(), address)
    });
    let functions: Vec<_> = functions.collect();
    module.addresses.extend(functions);
    let Module { functions, addresses, variables, .. } = module;
    let find = |name: &str| addresses.get(name).copied();
    for instruction in functions.iter_mut().flat_map(|function| &mut function.code) {
        // Branches have their targets.
        if instruction.opcode == Opcode::Bra {
            continue;
        }
        link_instruction(instruction, &find)?;
    }
    for variable in variables {
        for (at, name) in std::mem::take(&mut variable.references) {
            let address = find(&name).ok_or_else(|| format!("there is no variable {name}"))?;
            let bytes = variable.contents.get_mut(at..at + 8).ok_or("an address of few bytes")?;
            let added: [u8; 8] = bytes.try_into().unwrap_or_default();
            let sum = address.wrapping_add(u64::from_le_bytes(added));
            bytes.copy_from_slice(&sum.to_le_bytes());
        }
    }
    Ok(())
}

fn link_instruction(instruction: &mut Instruction, find: &impl Fn(&str) -> Option<u64>) -> Outcome {
    // The prototype of a call by address.
    if instruction.opcode == Opcode::Call && instruction.operands.len() > 3 {
        instruction.operands.truncate(3);
    }
    let mut missing = None;
    for operand in &mut instruction.operands {
        match operand {
            Operand::Name(name, offset) => match find(name) {
                Some(address) => {
                    *operand = Operand::Constant(address.wrapping_add_signed(*offset));
                }
                None => missing = Some(name.clone()),
            },
            Operand::Address(base, offset) => {
                let Base::Name(name) = base else { continue };
                match find(name) {
                    Some(address) => {
                        *offset += address as i64;
                        *base = Base::Zero;
                    }
                    None => missing = Some(name.clone()),
                }
            }
            _ => {}
        }
    }
    match missing {
        Some(name) => Err(instruction.fault(&format!("there is no {name}"))),
        None => Ok(()),
    }
}
