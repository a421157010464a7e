// Package kubernetes runs a Kubernetes cluster on this host, for tests and for
// development without a cluster: the real etcd, API server, controller manager and
// scheduler, built from the module in controlplane. Its nodes are those of package node,
// which run the containers of pods as processes of this host and need Go alone, or those
// of package kubelet, with a kubelet and containerd.
//
// The programs are built once for each state of the module's lock file, and kept in
// ${XDG_CACHE_HOME:-~/.cache}/sortie/kubernetes. The build takes minutes, and the build
// cache of Go grows by 3.5 GB.
package kubernetes
