package stack

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/private"
)

// Server is a server of the user on this host.
type Server struct {
	URL string `json:"url"`
	// Data is its data folder, an absolute path.
	Data string `json:"data"`
	// StartedAt is the time of its start.
	StartedAt time.Time `json:"startedAt"`
}

// serverLimit limits a file of a server in bytes. It is far above the real size.
const serverLimit = 16 << 10

// ServersFolder returns the folder in which the servers of a user register, or "" if the
// environment names none. It follows the XDG base directory specification.
func ServersFolder(lookup func(string) (string, bool)) string {
	if state, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "sortie", "servers")
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "sortie", "servers")
	}
	return ""
}

// Register adds this server to a folder of servers. It removes the records of servers that had
// the same address before. unregister removes the record of this one. Records have no secret.
func (s *Stack) Register(folder string) (unregister func() error, err error) {
	if err := private.Folder(folder); err != nil {
		return nil, fmt.Errorf("cannot register the server: %w", err)
	}
	own := Server{URL: s.addresses.URL, Data: s.addresses.Data, StartedAt: s.clock.Now().UTC()}
	path := serverFile(folder, own.Data)
	for _, other := range Servers(folder) {
		if other.URL == own.URL {
			_ = os.Remove(serverFile(folder, other.Data)) // a record that remains is older, and so ignored
		}
	}
	text, err := json.Marshal(own)
	if err == nil {
		err = private.Replace(path, text)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot register the server: %w", err)
	}
	return func() error {
		if now, err := private.Read(path, serverLimit); err != nil || string(now) != string(text) {
			return nil //nolint:nilerr // the record is gone, or that of another server
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove the record of the server: %w", err)
		}
		return nil
	}, nil
}

// serverFile returns the file of the server with a data folder.
func serverFile(folder, data string) string {
	return filepath.Join(folder, fmt.Sprintf("%x.json", sha256.Sum256([]byte(data))))
}

// Servers returns the registered servers, newest first. A record may remain after a crash of its
// server. Records that others than the user could have written are left out.
func Servers(folder string) (servers []Server) {
	entries, _ := os.ReadDir(folder) // without the folder there are no servers
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		text, err := private.Read(path, serverLimit)
		var one Server
		if err != nil || json.Unmarshal(text, &one) != nil || path != serverFile(folder, one.Data) {
			continue
		}
		if at, err := url.Parse(one.URL); err == nil && at.Scheme == "http" && at.Host != "" && filepath.IsAbs(one.Data) {
			servers = append(servers, one)
		}
	}
	slices.SortFunc(servers, func(a, b Server) int {
		if newer := b.StartedAt.Compare(a.StartedAt); newer != 0 {
			return newer
		}
		return strings.Compare(a.Data, b.Data)
	})
	return servers
}
