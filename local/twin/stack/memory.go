package stack

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/local/twin/flymachines/durable"
)

// memory is what a folder remembers of the process that served it: ports and
// keys. Workers that outlive a crash call where, and with what, they were told.
type memory struct {
	path string

	mu sync.Mutex
	// Addresses are where the parts listened.
	Addresses map[string]string `json:"addresses"`
	// Secrets are the credentials of the parts.
	Secrets map[string]string `json:"secrets"`
}

const memoryFile = "stack.json"

// recall reads the folder's memory, and begins one where there is none.
func recall(dir string) (*memory, error) {
	m := &memory{path: filepath.Join(dir, memoryFile)}
	text, err := os.ReadFile(m.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("cannot read what the folder remembers: %w", err)
	default:
		if err := json.Unmarshal(text, m); err != nil {
			return nil, fmt.Errorf("cannot read what the folder remembers: %s: %w", m.path, err)
		}
	}
	if m.Addresses == nil {
		m.Addresses = map[string]string{}
	}
	if m.Secrets == nil {
		m.Secrets = map[string]string{}
	}
	return m, nil
}

// save writes the memory whole or not at all; nobody else may read it.
func (m *memory) save() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := durable.Write(m.path, m); err != nil {
		return fmt.Errorf("cannot write what the folder remembers: %w", err)
	}
	return nil
}

// clearHalves removes what a process that was killed has begun to write in its
// folder, which is this process's now.
func clearHalves(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot look for half-written files: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, ".key-") && !strings.HasPrefix(name, ".stack-") && name != memoryFile+durable.Suffix {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("cannot remove a half-written file: %w", err)
		}
	}
	return nil
}

// secret gives the folder's secret of that name: n random bytes in
// hexadecimal, made at its first use.
func (m *memory) secret(name string, n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Secrets[name] == "" {
		m.Secrets[name] = randomHex(n)
	}
	return m.Secrets[name]
}

// randomHex gives n random bytes in hexadecimal. crypto/rand never fails.
func randomHex(n int) string {
	bytes := make([]byte, n)
	if _, err := rand.Read(bytes); err != nil {
		panic(err)
	}
	return hex.EncodeToString(bytes)
}

// listen listens on addr. Where its port is 0, the part's port of last time is
// tried first.
func (m *memory) listen(part, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no address such as 127.0.0.1:8080: %w", addr, err)
	}
	m.mu.Lock()
	before := m.Addresses[part]
	m.mu.Unlock()
	wanted := []string{addr}
	if beforeHost, _, err := net.SplitHostPort(before); port == "0" && err == nil && sameHost(beforeHost, host) {
		wanted = []string{before, addr}
	}
	for _, each := range wanted {
		var listener net.Listener
		if listener, err = net.Listen("tcp", each); err == nil {
			m.remember(part, listener.Addr().String())
			return listener, nil
		}
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
}

// checkListen listens on addr for a moment, so that a wrong address is found
// before a data folder is created. Port 0 is always free.
func checkListen(ctx context.Context, addr string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	return listener.Close()
}

func (m *memory) remember(part, addr string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Addresses[part] = addr
}

func sameHost(a, b string) bool {
	ipA, ipB := net.ParseIP(a), net.ParseIP(b)
	return a == b || ipA != nil && ipA.Equal(ipB) || b == "localhost" && ipA != nil && ipA.IsLoopback()
}
