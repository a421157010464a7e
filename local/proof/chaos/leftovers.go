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

// checkBucket checks that the object store has exactly the outputs and logs. It adds the logs
// to outputs.
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
			w.removeClones(got, outputs)
		}
		if !maps.Equal(got, want) {
			w.fail("bucket %s: got %v, want %v", bucket, got, want)
		}
		if bucket == store.Accepted {
			maps.Copy(outputs, logs) // checkDisk counts them
		}
		unfinished, err := store.Unfinished(ctx, bucket)
		if err != nil {
			return err
		}
		for _, key := range unfinished {
			if w.ofClone(key) {
				continue
			}
			w.fail("bucket %s: unfinished upload of %s", bucket, key)
		}
	}
	return nil
}

// removeClones moves the objects of clones from got to disk. Clones run outside of any machine.
// A lifecycle rule of the bucket removes their uploads after the run's end.
func (w *world) removeClones(got, disk map[string]int64) {
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

// expectedFile matches the files of an idle data folder.
var expectedFile = regexp.MustCompile(`^(sortie\.db|sortie\.db\.lock|stack\.json|keys\.pem|event-keys\.pem|token|\.gitignore|` +
	`s3/catalog\.db|s3/catalog\.db\.lock|s3/blobs/[0-9a-f]{2}/[0-9a-f]{32}|` +
	`machines/server\.lock|machines/apps\.json|machines/machines/[0-9a-f]+/(machine\.json|output\.[0-9]+))$`)

// checkDisk reports unexpected files, and stored bytes that belong to no output.
func (w *world) checkDisk(outputs map[string]int64) error {
	problems, err := unexpectedFiles(w.folder, outputs)
	for _, problem := range problems {
		w.fail("%s", problem)
	}
	return err
}

func unexpectedFiles(folder string, outputs map[string]int64) (problems []string, err error) {
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
				problems = append(problems, "leftover folder of a machine: "+name)
			}
			return nil
		}
		if !expectedFile.MatchString(name) {
			problems = append(problems, "leftover file: "+name)
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
		return problems, fmt.Errorf("cannot walk the data folder: %w", err)
	}
	if blobs != bytes {
		problems = append(problems, fmt.Sprintf("got %d stored bytes, want %d for the outputs", blobs, bytes))
	}
	return problems, nil
}
