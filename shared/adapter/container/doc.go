// Package container implements port.Runner on a container engine: the Docker
// Engine API, which Docker and Podman serve.
//
// Each attempt is one container. Its name is unique in the engine, so a repeated
// launch, or one whose answer was lost, finds its container by the name and adopts
// it if its labels name the same Sortie, tenant, run and attempt. The labels are
// also how List and a restarted process find the containers.
//
// How a program ended is read from the inspected container alone. The engine's
// answers to attach and wait can come before the exit code is known. A container
// remains for some time after its end, until Prune removes it, so that its exit and its
// log can be read.
//
// A container has the size of its machine as limits of memory, CPU and processes,
// no capabilities, no new privileges, and a read-only root file system with empty
// file systems in memory at /tmp, /var/tmp and /run.
//
// The engine does not record who stopped a container. The Runner keeps that in
// files of its folder, so that it is known after a restart.
package container
