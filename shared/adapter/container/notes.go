package container

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/private"
)

// note records what Sortie did to a container, which the engine does not.
type note struct {
	// Requested means that Sortie stopped the container. Host means that it did so because the
	// host shut down.
	Requested bool `json:"requested,omitempty"`
	Host      bool `json:"host,omitempty"`
	// KillAt is the time at which a stopped container is killed; zero means never.
	KillAt time.Time `json:"killAt,omitzero"`
	// DestroyedAt is the time at which the machine was destroyed; zero if it was not.
	DestroyedAt time.Time `json:"destroyedAt,omitzero"`
}

// notes are the notes of a folder: one file for each container.
type notes struct {
	dir string
	mu  *sync.Mutex
	ids map[string]note
}

// noteLimit is far above the size of a note, in bytes.
const noteLimit = 4 << 10

func openNotes(dir string) (notes, error) {
	n := notes{dir: dir, mu: &sync.Mutex{}, ids: map[string]note{}}
	if err := private.Folder(dir); err != nil {
		return notes{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return notes{}, err
	}
	for _, entry := range entries {
		id, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !idForm.MatchString(id) {
			continue // a file that a killed process did not complete
		}
		text, err := private.Read(filepath.Join(dir, entry.Name()), noteLimit)
		if err != nil {
			return notes{}, err
		}
		var one note
		if err := json.Unmarshal(text, &one); err != nil {
			return notes{}, errors.New(entry.Name() + ": " + err.Error())
		}
		n.ids[id] = one
	}
	return n, nil
}

// of returns the note of a container.
func (n notes) of(id string) note {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ids[id]
}

// all returns all notes by container id.
func (n notes) all() map[string]note {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make(map[string]note, len(n.ids))
	maps.Copy(all, n.ids)
	return all
}

// change changes the note of a container and writes it to disk before it returns.
func (n notes) change(id string, change func(*note)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.ids[id]
	before := one
	if change(&one); one == before {
		return nil
	}
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := private.Replace(n.path(id), text); err != nil {
		return err
	}
	n.ids[id] = one
	return nil
}

// remove removes the note of a removed container.
func (n notes) remove(id string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ids, id)
	if err := os.Remove(n.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (n notes) path(id string) string { return filepath.Join(n.dir, id+".json") }
