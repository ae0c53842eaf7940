// Package exchange samples a posterior by replica exchange, or parallel tempering, and estimates the evidence.
//
// [Replicas] have copies of the parameters at each of a ladder of powers of the likelihood, from the prior to the
// posterior. A kernel moves each of them under its own power, and neighbours exchange their places. It visits each
// power again and again, where smc.Tempered goes through them once. Take it to be sure of an evidence, or of how much
// of the posterior lies in each mode. It shares no particle and no estimator with smc.Tempered, so that one checks the
// other. If the kernel mixes well it costs more; if its moves do not leave a mode, exchanges with flatter replicas
// still can.
//
// # Where it fails
//
// Read the result's Warnings. The draws depend on where the replicas began until these have come down from the prior
// several times (Details.Arrivals): take more Sweeps and WarmUp, or a finer Ladder. A narrow mode that no replica has
// found in the warm-up is missing from draws and evidence.
package exchange
