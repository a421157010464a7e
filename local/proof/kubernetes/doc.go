// Package kubernetes runs a Kubernetes cluster on this host, for tests and for development
// without a cluster. It runs the real etcd, API server, controller manager and scheduler, built
// from the module in controlplane. There are two kinds of nodes. Those of package node run
// containers as processes of this host and need only Go. Those of package kubelet run a kubelet
// and containerd.
//
// The programs are built once for each state of the module's lock file and stored in
// ${XDG_CACHE_HOME:-~/.cache}/sortie/kubernetes. The build takes minutes and adds 3.5 GB to
// Go's build cache.
package kubernetes
