package jobfile

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// belowMost limits the files and folders that Below looks at.
const belowMost = 10_000

// Below returns the jobs of files in folders below the named folders, which Read leaves out: the
// file of each, by id. Hidden folders, links and files that are no job files are ignored.
func Below(read Reader, names []string) map[string]string {
	found, left := map[string]string{}, belowMost
	for _, top := range names {
		_ = filepath.WalkDir(top, func(name string, e fs.DirEntry, err error) error {
			if left--; err != nil || left < 0 {
				return fs.SkipDir
			}
			if e.IsDir() && name != top && strings.HasPrefix(e.Name(), ".") {
				return fs.SkipDir
			}
			inTop := filepath.Dir(name) == filepath.Clean(top)
			if !e.Type().IsRegular() || inTop || name == top || !isJobFile(e.Name()) {
				return nil
			}
			text, err := read(name, 1<<20)
			if err != nil {
				return nil //nolint:nilerr // it is no job file
			}
			for _, document := range documentsOf(text) {
				if f, problems := parse(nil, name, document); len(problems) == 0 {
					found[f.Definition.ID] = name
				}
			}
			return nil
		})
	}
	return found
}

// isJobFile reports whether a file has the name of a job file.
func isJobFile(name string) bool {
	return slices.Contains(Extensions, strings.TrimPrefix(filepath.Ext(name), ".")) && !strings.HasSuffix(name, SchemaName)
}
