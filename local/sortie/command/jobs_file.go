package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/httpkit"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/limit"
)

// jobFile is a job document that was read from a file.
type jobFile struct {
	name       string
	document   []byte
	definition job.Definition
	// lines has the lines of the fields in the file.
	lines job.Document
}

// fileLimit limits a file in bytes. A file of jobs has several documents.
const fileLimit = 16 << 20

// readFile reads a file up to one byte more than a document may have. "-" means standard input.
func (a *app) readFile(name string) ([]byte, error) { return a.readUpTo(name, limit.JobDocument+1) }

func (a *app) readUpTo(name string, most int64) ([]byte, error) {
	source := a.Stdin
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, missing(name, err)
		}
		defer func() { _ = opened.Close() }()
		source = opened
	}
	document, err := io.ReadAll(io.LimitReader(source, most))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return document, nil
}

// readJob reads and checks a file with one job; "-" means standard input.
func (a *app) readJob(name string) (jobFile, error) {
	files, err := a.readJobs([]string{name})
	if err == nil && len(files) > 1 {
		err = wrong("%s: %d jobs, want one", name, len(files))
	}
	if err != nil {
		return jobFile{}, err
	}
	return files[0], nil
}

// readJobs reads and checks the jobs of files and folders. A file has one job, or several
// separated by lines "---". The error has the problems of all files.
func (a *app) readJobs(names []string) (files []jobFile, err error) {
	var problems []string
	from := map[string]string{}
	for _, name := range names {
		list, err := jobFilesIn(name)
		if err != nil {
			return nil, err
		}
		for _, each := range list {
			text, err := a.readUpTo(each, fileLimit)
			if err != nil {
				return nil, err
			}
			for _, document := range documentsOf(text) {
				f, found := parseJob(each, document)
				id := f.definition.ID
				if other, twice := from[id]; twice && id != "" {
					found = append(found, job.Problem{Line: f.lines.LineOf("id"), Field: "id", Problem: fmt.Sprintf("%q is the id of a job in %s too", id, other)})
				}
				from[id], problems, files = each, append(problems, f.texts(found)...), append(files, f)
			}
		}
	}
	if len(problems) > 0 {
		return files, wrong("%s", strings.Join(problems, "\n"))
	}
	return files, nil
}

// jobFilesIn returns the job files in a folder, by name. It returns the name of a file itself.
func jobFilesIn(name string) ([]string, error) {
	if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() {
		return []string{name}, nil //nolint:nilerr // the error of reading the file names it
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	var files []string
	for _, e := range entries {
		if kind := filepath.Ext(e.Name()); slices.Contains(jobExtensions, strings.TrimPrefix(kind, ".")) && !e.IsDir() && !strings.HasSuffix(e.Name(), schemaFile) {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, wrong("%s: no job files, want names that end with .yaml, .yml or .json", name)
	}
	return files, nil
}

// jobExtensions are the extensions of job files.
var jobExtensions = []string{"yaml", "yml", "json"}

// documentsOf splits a file at lines "---". Each document keeps its line numbers by empty lines
// before it. Documents without content are left out, unless there is no other.
func documentsOf(text []byte) (documents [][]byte) {
	if json.Valid(text) {
		return [][]byte{text}
	}
	var current []byte
	number, content := 0, false
	end := func() {
		if content {
			documents = append(documents, current)
		}
		current, content = bytes.Repeat([]byte("\n"), number), false
	}
	for line := range bytes.Lines(text) {
		if rest, marker := bytes.CutPrefix(line, []byte("---")); marker && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0) {
			end()
			line = rest
		}
		trimmed := bytes.TrimSpace(line)
		content = content || len(trimmed) > 0 && trimmed[0] != '#'
		current = append(current, line...)
		number++
	}
	if end(); documents == nil {
		return [][]byte{text}
	}
	return documents
}

// parseJob checks the job of a document, and makes the paths of its program absolute.
func parseJob(name string, document []byte) (f jobFile, problems []job.Problem) {
	d, problems := job.Parse(document, nil)
	var again job.Definition
	lines, _ := job.Decode(document, &again) // the problems are those of Parse
	f = jobFile{name: name, document: document, definition: d, lines: lines}
	folder := "."
	if name != "-" {
		folder = filepath.Dir(name)
	}
	changed, err := ownProgram(&f.definition, folder)
	if f.definition.Image != d.Image { // it was relative, which is the problem of an image exec:
		problems = slices.DeleteFunc(problems, func(p job.Problem) bool { return p.Field == "image" })
	}
	for i := range problems {
		if problems[i].Field == "image" && err != nil {
			problems[i].Problem = err.Error()
		}
	}
	if changed && len(problems) == 0 {
		if f.document, err = f.definition.Canonical(); err != nil {
			problems = []job.Problem{{Line: 1, Problem: err.Error()}}
		}
	}
	return f, problems
}

// texts formats problems of the file.
func (f jobFile) texts(problems []job.Problem) []string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = f.at(p.Line, p.Field, p.Problem)
	}
	return lines
}

// at formats a problem of the file like a compiler. A definition from the command line has no
// file name and no lines.
func (f jobFile) at(line int, field, problem string) string {
	if field != "" {
		problem = field + ": " + problem
	}
	if f.name == "" {
		return problem
	}
	return fmt.Sprintf("%s:%d: %s", f.name, line, problem)
}

// explained adds the file name to the problems in a server's error.
func (f jobFile) explained(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || len(p.Problems) == 0 {
		return err
	}
	lines := make([]string, len(p.Problems))
	for i, each := range p.Problems {
		lines[i] = f.at(f.lines.LineOf(each.Field), each.Field, each.Problem)
	}
	return wrong("%s", strings.Join(lines, "\n"))
}

// warn notes the warnings about the file.
func (f jobFile) warn(a *app) {
	for _, warning := range f.definition.Warnings() {
		a.note("%s: warning: %s", f.name, warning)
	}
}

func (f jobFile) contentType() string {
	if json.Valid(f.document) {
		return httpkit.TypeJSON
	}
	return httpkit.TypeYAML
}
