"""What a network costs, without building it: parameters, multiply-adds, memory."""

from eclose.meanings.cost.cost import Cost, LayerCost, cost, program_cost

__all__ = ["Cost", "LayerCost", "cost", "program_cost"]
