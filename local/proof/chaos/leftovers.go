package chaos

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
)

// checkBucket lists the object store as its owner: outputs by key and size, and
// nothing else but logs, which it adds to the outputs.
func (w *world) checkBucket(ctx context.Context, outputs map[string]int64) error {
	_, store, err := outside.LocalStack(w.server.addresses)
	if err != nil {
		return err
	}
	for bucket, want := range map[string]map[string]int64{store.Uploads: {}, store.Accepted: outputs} {
		got, err := store.Objects(ctx, bucket)
		if err != nil {
			return err
		}
		logs := outside.Logs(got)
		if bucket == store.Uploads {
			w.ofClones(got, outputs)
		}
		if !maps.Equal(got, want) {
			w.broken("in %s there is %v, and should be %v", bucket, got, want)
		}
		if bucket == store.Accepted {
			maps.Copy(outputs, logs) // for the disk
		}
		unfinished, err := store.Unfinished(ctx, bucket)
		if err != nil {
			return err
		}
		for _, key := range unfinished {
			if w.ofClone(key) {
				continue
			}
			w.broken("in %s an upload of %s is unfinished", bucket, key)
		}
	}
	return nil
}

// ofClones takes out of got what clones have left. They are outside of any
// machine, and what they upload after the end is left to the bucket's own rule.
func (w *world) ofClones(got, disk map[string]int64) {
	for key, size := range got {
		if w.ofClone(key) {
			delete(got, key)
			disk[key] = size
		}
	}
}

func (w *world) ofClone(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := strings.Split(key, "/")
	return len(parts) > 1 && w.cloned[parts[1]]
}

// belongs are the files of a data folder that nobody uses.
var belongs = regexp.MustCompile(`^(sortie\.db|sortie\.db\.lock|stack\.json|keys\.pem|` +
	`s3/catalog\.db|s3/catalog\.db\.lock|s3/blobs/[0-9a-f]{2}/[0-9a-f]{32}|` +
	`machines/server\.lock|machines/apps\.json|machines/machines/[0-9a-f]+/(machine\.json|output\.[0-9]+))$`)

// checkDisk looks for files that belong to nothing, and for bytes that no
// output is made of.
func (w *world) checkDisk(outputs map[string]int64) error {
	problems, err := stray(w.folder, outputs)
	for _, problem := range problems {
		w.broken("%s", problem)
	}
	return err
}

func stray(folder string, outputs map[string]int64) (problems []string, err error) {
	blobs, bytes := int64(0), int64(0)
	for _, size := range outputs {
		bytes += size
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if strings.HasSuffix(name, "/tmp") || strings.HasSuffix(name, "/root") {
				problems = append(problems, "a machine's folder is left: "+name)
			}
			return nil
		}
		if !belongs.MatchString(name) {
			problems = append(problems, "a file is left: "+name)
		}
		if strings.HasPrefix(name, "s3/blobs/") {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			blobs += info.Size()
		}
		return nil
	})
	if err != nil {
		return problems, fmt.Errorf("cannot look through the data folder: %w", err)
	}
	if blobs != bytes {
		problems = append(problems, fmt.Sprintf("the store holds %d bytes for outputs of %d", blobs, bytes))
	}
	return problems, nil
}
