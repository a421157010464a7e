// Package container implements port.Runner on a container engine: the Docker
// Engine API, which Docker and Podman serve.
//
// Each attempt is one container. Its name is unique in the engine. So a repeated launch, or one
// whose response was lost, finds its container by the name. It adopts the container if its
// labels name the same Sortie instance, tenant, run and attempt. List and a restarted process
// find the containers by their labels.
//
// The inspected container alone determines how a program ended. The engine's responses to
// attach and wait can come before the exit code is known. A container remains for some time
// after its end, until Prune removes it, so that its exit and its log can be read.
//
// A container has the size of its machine as limits of memory, CPU and processes,
// no capabilities, no new privileges, and a read-only root file system with empty
// file systems in memory at /tmp, /var/tmp and /run.
//
// The engine does not record who stopped a container. The Runner records that in files of its
// folder, so that it is known after a restart.
package container
