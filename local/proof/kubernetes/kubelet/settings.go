//go:build linux

package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// settings configure the processes of a node.
type settings struct {
	// Dir has the configuration and the logs. Data is removed with the node.
	Dir, Data string
	// Group is the name of the control group.
	Group string
	// Packages is a folder that is mounted over /usr.
	Packages string
	Kubelet  []string
	Engine   []string
	Env      []string
}

// socket is the socket of containerd, in the node's own /run.
const socket = "/run/containerd.sock"

// settle writes the configuration files of a node and returns its settings.
func settle(cfg Config) (settings, error) {
	s := settings{
		Dir: cfg.Dir, Data: filepath.Join(cfg.Dir, "data"), Group: filepath.Base(filepath.Dir(cfg.Dir)) + "-" + cfg.Name, Packages: cfg.Packages,
		Env: []string{"PATH=" + strings.Join(append(append([]string{}, cfg.Programs...), "/usr/sbin", "/usr/bin", "/sbin", "/bin"), ":"), "HOME=" + cfg.Dir, "SORTIE_SHARED=" + cfg.Shared},
	}
	address, err := hostAddress()
	if err != nil {
		return s, err
	}
	port, err := freePort(address)
	if err != nil {
		return s, err
	}
	paths := map[string]string{}
	for _, name := range []string{"kubelet", "containerd", Wrapper} {
		if paths[name], err = find(cfg.Programs, name); err != nil {
			return s, err
		}
	}
	agent, err := json.Marshal(kubeletConfig(cfg, s, address, port))
	if err != nil {
		return s, err
	}
	for name, text := range map[string]string{
		"kubelet.json": string(agent), "containerd.toml": containerdConfig(cfg, s, paths[Wrapper]),
		"registry/_default/hosts.toml": fmt.Sprintf("server = %q\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", cfg.Registry),
		"network/host.conflist":        `{"cniVersion": "1.0.0", "name": "host", "plugins": [{"type": "host"}]}`,
		"programs/host":                fmt.Sprintf(networkPlugin, address),
	} {
		path := filepath.Join(cfg.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return s, err
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // G306: one is a program
			return s, err
		}
	}
	s.Engine = []string{paths["containerd"], "--config", filepath.Join(cfg.Dir, "containerd.toml")}
	s.Kubelet = []string{
		paths["kubelet"], "--config", filepath.Join(cfg.Dir, "kubelet.json"), "--kubeconfig", cfg.Kubeconfig,
		"--hostname-override", cfg.Name, "--node-ip", address, "--root-dir", filepath.Join(s.Data, "kubelet"), "--cert-dir", filepath.Join(s.Data, "pki"),
	}
	return s, nil
}

func find(folders []string, name string) (string, error) {
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("missing program " + name + " in " + strings.Join(folders, ", "))
}

// networkPlugin is a CNI plugin that reports the host's address for each pod. The pods use the
// host's network.
const networkPlugin = `#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD) echo '{"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": "'"$CNI_NETNS"'"}], "ips": [{"interface": 0, "address": "%s/32"}], "dns": {}}' ;;
esac
`

// containerdConfig returns the configuration of containerd. It loads no security profiles into
// the kernel, and it cannot lower the OOM scores of processes.
func containerdConfig(cfg Config, s settings, wrapper string) string {
	q := strconv.Quote
	return `version = 3
root = ` + q(filepath.Join(s.Data, "containerd")) + `
state = "/run/containerd-state"
[grpc]
  address = ` + q(socket) + `
[ttrpc]
  address = ` + q(socket+".ttrpc") + `
[plugins.'io.containerd.internal.v1.opt']
  path = ` + q(filepath.Join(s.Data, "opt")) + `
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = ` + q(filepath.Join(cfg.Dir, "registry")) + `
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = ` + q(cfg.Pause) + `
[plugins.'io.containerd.cri.v1.runtime']
  disable_apparmor = true
  restrict_oom_score_adj = true
  enable_unprivileged_ports = false
  enable_unprivileged_icmp = false
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = "runc"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = ` + q(wrapper) + `
  SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [` + q(filepath.Join(cfg.Dir, "programs")) + `]
  conf_dir = ` + q(filepath.Join(cfg.Dir, "network")) + `
  use_internal_loopback = true
`
}

// kubeletConfig returns the configuration of the kubelet. It renews its lease each second,
// because the controllers of tests declare a node lost after five.
func kubeletConfig(cfg Config, s settings, address string, port int) map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": address, "port": port, "readOnlyPort": 0, "healthzPort": 0,
		"authentication":           map[string]any{"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": false}, "x509": map[string]any{"clientCAFile": cfg.Authority}},
		"authorization":            map[string]any{"mode": "AlwaysAllow"},
		"containerRuntimeEndpoint": "unix://" + socket,
		"cgroupDriver":             "cgroupfs", "cgroupRoot": "/" + s.Group, "failCgroupV1": false, "enforceNodeAllocatable": []string{},
		"failSwapOn": false, "oomScoreAdj": 0, "makeIPTablesUtilChains": false, "localStorageCapacityIsolation": false,
		"nodeLeaseDurationSeconds": 4, "nodeStatusUpdateFrequency": "2s", "maxPods": 250, "serializeImagePulls": false,
		"evictionHard": map[string]string{"memory.available": "100Mi"}, "imageGCHighThresholdPercent": 100,
		"podLogsDir": filepath.Join(s.Data, "logs"), "volumePluginDir": filepath.Join(s.Data, "plugins"),
	}
}
