// Package scenario plays a user's jobs for simulated weeks in seconds, by the real core: the use
// cases of package app, the SQLite store in a temporary folder, the state machine of runs, the
// wake-ups of schedules and the sweeps, on a virtual clock. Only the machines, their programs and
// the clients are drawn. The same scenario and seed give the same answer.
//
// Read reads a scenario, Play plays it, and a Result has the answer. SCENARIOS.md explains the
// file to users.
package scenario
