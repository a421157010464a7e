package flymachines

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// manifest is the part of a machine's config that this server reads. The whole
// config is stored and returned as it was sent.
type manifest struct {
	Image       string            `json:"image"`
	Env         map[string]string `json:"env"`
	Metadata    map[string]string `json:"metadata"`
	AutoDestroy bool              `json:"auto_destroy"`
	Init        struct {
		Exec       []string `json:"exec"`
		Entrypoint []string `json:"entrypoint"`
		Cmd        []string `json:"cmd"`
	} `json:"init"`
	Guest *struct {
		CPUKind  string `json:"cpu_kind"`
		CPUs     int    `json:"cpus"`
		MemoryMB int    `json:"memory_mb"`
	} `json:"guest"`
	Restart *struct {
		Policy     string `json:"policy"`
		MaxRetries int    `json:"max_retries"`
	} `json:"restart"`
	StopConfig *struct {
		Signal  string    `json:"signal"`
		Timeout *duration `json:"timeout"`
	} `json:"stop_config"`
	Files []struct {
		GuestPath string  `json:"guest_path"`
		RawValue  *string `json:"raw_value"`
		Mode      uint32  `json:"mode"`
	} `json:"files"`

	stopSignal syscall.Signal
	files      []File
}

// Fly's defaults for fields that a config omits.
const (
	defaultStopSignal = syscall.SIGINT
	defaultGrace      = 5 * time.Second
	defaultMemoryMB   = 256
	defaultRetries    = 10
)

// duration is a duration in Go's notation, or in nanoseconds.
type duration struct{ time.Duration }

// UnmarshalJSON accepts a string or a number.
func (d *duration) UnmarshalJSON(data []byte) error {
	var number float64
	if err := json.Unmarshal(data, &number); err == nil {
		d.Duration = time.Duration(number)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("want a duration as a string or a number: %w", err)
	}
	var err error
	d.Duration, err = time.ParseDuration(text)
	return err
}

// parseManifest parses a config and checks it against Fly's rules. The client sees its errors.
func parseManifest(config json.RawMessage) (*manifest, error) {
	var m manifest
	if len(config) == 0 || string(config) == "null" {
		return nil, fmt.Errorf("config is required")
	}
	if err := json.Unmarshal(config, &m); err != nil {
		return nil, fmt.Errorf("invalid config: %w", err)
	}
	if m.Image == "" {
		return nil, fmt.Errorf("config.image is required")
	}
	if g := m.Guest; g != nil {
		if g.CPUKind != "" && g.CPUKind != "shared" && g.CPUKind != "performance" {
			return nil, fmt.Errorf("invalid config.guest.cpu_kind: %q", g.CPUKind)
		}
		cpus, least, most := max(g.CPUs, 1), 256, 2048
		if g.CPUKind == "performance" {
			least, most = 2048, 8192
		}
		if g.CPUs < 0 || cpus > 16 {
			return nil, fmt.Errorf("invalid config.guest.cpus: %d", g.CPUs)
		}
		if mb := g.MemoryMB; mb != 0 && (mb%256 != 0 || mb < least || mb > most*cpus) {
			return nil, fmt.Errorf("invalid config.guest.memory_mb: %d is not a multiple of 256 from %d to %d", mb, least, most*cpus)
		}
	}
	if m.Restart != nil {
		switch m.Restart.Policy {
		case "", "no", "always", "on-failure":
		default:
			return nil, fmt.Errorf("invalid config.restart.policy: %q", m.Restart.Policy)
		}
	}
	m.stopSignal = defaultStopSignal
	if m.StopConfig != nil {
		s, err := parseSignal(m.StopConfig.Signal)
		if err != nil {
			return nil, fmt.Errorf("invalid config.stop_config.signal: %w", err)
		}
		if s != 0 {
			m.stopSignal = s
		}
	}
	for key := range m.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.Contains(m.Env[key], "\x00") {
			return nil, fmt.Errorf("invalid config.env: %q", key)
		}
	}
	return &m, m.readFiles()
}

func (m *manifest) readFiles() error {
	for i, file := range m.Files {
		path := strings.TrimPrefix(filepath.Clean(file.GuestPath), "/")
		if !strings.HasPrefix(file.GuestPath, "/") || !filepath.IsLocal(path) {
			return fmt.Errorf("invalid config.files[%d].guest_path: %q is not an absolute path", i, file.GuestPath)
		}
		if file.RawValue == nil {
			return fmt.Errorf("invalid config.files[%d]: raw_value is required", i)
		}
		data, err := base64.StdEncoding.DecodeString(*file.RawValue)
		if err != nil {
			return fmt.Errorf("invalid config.files[%d].raw_value: %w", i, err)
		}
		m.files = append(m.files, File{Path: path, Data: data, Mode: file.Mode})
	}
	return nil
}

// program returns the command of the image; nil for an unknown image.
func (m *manifest) program(c Config) []string {
	if path, exec := strings.CutPrefix(m.Image, "exec:"); exec && c.ExecImages && filepath.IsAbs(path) {
		return []string{path}
	}
	return c.Images[m.Image]
}

// wrapped reports whether the wrapper runs the program.
func (m *manifest) wrapped(c Config) bool {
	return c.Wrap && m.Env[contract.CompletionVariable] == "exit" && len(m.Init.Exec) == 0 && len(m.Init.Entrypoint) == 0
}

// argv returns the command line that the config runs: its own command, or the command of its
// image.
func (m *manifest) argv(c Config) ([]string, error) {
	program := m.program(c)
	switch {
	case len(m.Init.Exec) > 0:
		return m.Init.Exec, nil
	case len(m.Init.Entrypoint) > 0:
		return append(slices.Clip(m.Init.Entrypoint), m.Init.Cmd...), nil
	case len(program) == 0:
		return nil, fmt.Errorf("failed to get manifest %s: not found", m.Image)
	}
	return append(slices.Clip(program), m.Init.Cmd...), nil
}

func (m *manifest) grace() time.Duration {
	if m.StopConfig != nil && m.StopConfig.Timeout != nil && m.StopConfig.Timeout.Duration > 0 {
		return m.StopConfig.Timeout.Duration
	}
	return defaultGrace
}

func (m *manifest) memoryMB() int {
	if m.Guest != nil && m.Guest.MemoryMB > 0 {
		return m.Guest.MemoryMB
	}
	return defaultMemoryMB
}

// again reports whether the restart policy restarts the program after this exit.
func (m *manifest) again(exit Exit, restarts int) bool {
	policy, retries := "on-failure", defaultRetries
	if m.Restart != nil {
		if m.Restart.Policy != "" {
			policy = m.Restart.Policy
		}
		if m.Restart.MaxRetries > 0 {
			retries = m.Restart.MaxRetries
		}
	}
	return policy == "always" || (policy == "on-failure" && exit.Code != 0 && restarts < retries)
}

// imageRef is an image reference in its parts.
type imageRef struct {
	Registry   string            `json:"registry"`
	Repository string            `json:"repository"`
	Tag        string            `json:"tag,omitempty"`
	Digest     string            `json:"digest,omitempty"`
	Labels     map[string]string `json:"labels"`
}

func parseImage(image string) imageRef {
	ref := imageRef{Registry: "registry-1.docker.io", Labels: map[string]string{}}
	name, digest, _ := strings.Cut(image, "@")
	ref.Digest = digest
	if first, rest, ok := strings.Cut(name, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		ref.Registry, name = first, rest
	}
	ref.Repository, ref.Tag, _ = strings.Cut(name, ":")
	if ref.Tag == "" && digest == "" {
		ref.Tag = "latest"
	}
	return ref
}

func (m *manifest) processGroup() string {
	if group := m.Metadata["fly_process_group"]; group != "" {
		return group
	}
	return "app"
}
