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

	"github.com/sortie-dev/sortie/shared/base/private"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor/durable"
)

// memory stores the addresses and keys of the folder's earlier process. Workers that survive a
// crash call the same addresses with the same credentials.
type memory struct {
	path string

	mu sync.Mutex
	// Addresses are the addresses of the parts.
	Addresses map[string]string `json:"addresses"`
	// Secrets are the credentials of the parts.
	Secrets map[string]string `json:"secrets"`
	// Tenant is the tenant and project of clients without a token, and of those with
	// AUTH_TOKEN.
	Tenant string `json:"tenant"`
}

const memoryFile = "stack.json"

// memoryLimit limits the file in bytes. It is far above the real size.
const memoryLimit = 1 << 20

// loadMemory reads the memory of a folder. A new folder has an empty one.
func loadMemory(dir string) (*memory, error) {
	m := &memory{path: filepath.Join(dir, memoryFile)}
	text, err := private.Read(m.path, memoryLimit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("cannot read the ports and keys of the folder: %w", err)
	default:
		if err := json.Unmarshal(text, m); err != nil {
			return nil, fmt.Errorf("cannot read the ports and keys of the folder: %s: %w", m.path, err)
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

// save writes the memory atomically, readable only by the user.
func (m *memory) save() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := durable.Write(m.path, m); err != nil {
		return fmt.Errorf("cannot write the ports and keys of the folder: %w", err)
	}
	return nil
}

// removePartial removes the incomplete files of a killed process.
func removePartial(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot search for partial files: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, private.Partial) && !strings.HasPrefix(name, ".key-") && !strings.HasPrefix(name, ".stack-") && name != memoryFile+durable.Suffix {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("cannot remove a partial file: %w", err)
		}
	}
	return nil
}

// secret returns the folder's secret with this name: n random bytes in hexadecimal. The first
// call generates it.
func (m *memory) secret(name string, n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Secrets[name] == "" {
		m.Secrets[name] = randomHex(n)
	}
	return m.Secrets[name]
}

// renew replaces the folder's secret with this name. The author of a planted folder then does
// not know the secret of this process.
func (m *memory) renew(name string, n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Secrets[name] = randomHex(n)
	return m.Secrets[name]
}

// renewKey is like renew for a key of n bytes.
func (m *memory) renewKey(name string, n int) []byte {
	key, err := hex.DecodeString(m.renew(name, n))
	if err != nil {
		panic(err) // the secret is hexadecimal
	}
	return key
}

// randomHex returns n random bytes in hexadecimal. crypto/rand does not fail.
func randomHex(n int) string {
	bytes := make([]byte, n)
	if _, err := rand.Read(bytes); err != nil {
		panic(err)
	}
	return hex.EncodeToString(bytes)
}

// listen listens on addr. For port 0 it tries the previous port of the part
// first.
func (m *memory) listen(part, addr string) (net.Listener, error) {
	return m.listenWith(context.Background(), net.ListenConfig{}, part, addr)
}

// listenWith is like listen with a listener configuration.
func (m *memory) listenWith(ctx context.Context, config net.ListenConfig, part, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("malformed address %q, want HOST:PORT: %w", addr, err)
	}
	before := m.address(part)
	candidates := []string{addr}
	if beforeHost, _, err := net.SplitHostPort(before); port == "0" && err == nil && sameHost(beforeHost, host) {
		candidates = []string{before, addr}
	}
	for _, each := range candidates {
		var listener net.Listener
		if listener, err = config.Listen(ctx, "tcp", each); err == nil {
			m.remember(part, listener.Addr().String())
			return listener, nil
		}
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
}

// address returns the previous address of a part; empty means no such address.
func (m *memory) address(part string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Addresses[part]
}

func (m *memory) remember(part, addr string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Addresses[part] = addr
}
