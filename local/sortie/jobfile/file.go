// Package jobfile reads and checks files of jobs, and finds the programs that they name.
package jobfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/spec"

	"github.com/sortie-dev/sortie/local/sortie/argument"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// File is a job document that was read from a file.
type File struct {
	// Name is empty for a definition from the command line.
	Name string
	// Document is the text of one job, in YAML or JSON.
	Document   []byte
	Definition job.Definition
	// lines has the lines of the fields in the file.
	lines job.Document
}

// sizeLimit limits a file in bytes. A file of jobs has several documents.
const sizeLimit = 16 << 20

// SchemaName is the name of the JSON Schema beside job files. It is no job file.
const SchemaName = "job.schema.json"

// Reader reads a file, up to a number of bytes. The name "-" means standard input.
type Reader func(name string, most int64) ([]byte, error)

// ReadOne reads and checks a file with one job; "-" means standard input.
func ReadOne(read Reader, name string) (File, error) {
	files, err := Read(read, []string{name})
	if err == nil && len(files) > 1 {
		err = argument.Invalid("%s: %d jobs, want one", name, len(files))
	}
	if err != nil {
		return File{}, err
	}
	return files[0], nil
}

// Read reads and checks the jobs of files and folders. A file has one job, or several
// separated by lines "---". The error has the problems of all files.
func Read(read Reader, names []string) (files []File, err error) {
	var problems []string
	from := map[string]string{}
	for _, name := range names {
		list, err := filesIn(name)
		if err != nil {
			return nil, err
		}
		for _, each := range list {
			text, err := read(each, sizeLimit)
			if err != nil {
				return nil, err
			}
			for _, document := range documentsOf(text) {
				f, found := parse(read, each, document)
				id := f.Definition.ID
				if other, twice := from[id]; twice && id != "" {
					found = append(found, job.Problem{Line: f.lines.LineOf("id"), Field: "id", Problem: fmt.Sprintf("%q is the id of a job in %s too", id, other)})
				}
				from[id], problems, files = each, append(problems, f.texts(found)...), append(files, f)
			}
		}
	}
	if len(problems) == 0 {
		problems = circles(files)
	}
	if len(problems) > 0 {
		return files, argument.Invalid("%s", strings.Join(problems, "\n"))
	}
	return files, nil
}

// circles returns the problems of jobs that come after each other in a circle, and of graphs that
// are too large. Jobs that are in none of the files are ignored.
func circles(files []File) (problems []string) {
	load := func(id string) (*job.Job, error) {
		for _, f := range files {
			if f.Definition.ID == id {
				return &job.Job{ID: id, Definition: f.Definition}, nil
			}
		}
		return nil, nil
	}
	for _, f := range files {
		found, _, _ := f.Definition.CheckGraph(load) //nolint:errcheck // load returns no error
		for i := range found {
			found[i].Line = f.lines.LineOf(found[i].Field)
		}
		problems = append(problems, f.texts(found)...)
	}
	return problems
}

// filesIn returns the job files in a folder, by name. It returns the name of a file itself.
func filesIn(name string) ([]string, error) {
	if info, err := os.Stat(name); name == "-" || err != nil || !info.IsDir() {
		return []string{name}, nil //nolint:nilerr // the error of reading the file names it
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	var files []string
	for _, e := range entries {
		if isJobFile(e.Name()) && !e.IsDir() {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, argument.Invalid("%s: no job files, want names that end with .yaml, .yml or .json", name)
	}
	return files, nil
}

// Extensions are the extensions of job files.
var Extensions = []string{"yaml", "yml", "json"}

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

// itemsFile is the field of a job that only a file has.
const itemsFile = "items.file"

// parse checks the job of a document, reads its file of items, and makes the paths of its program
// absolute.
func parse(read Reader, name string, document []byte) (f File, problems []job.Problem) {
	d, problems := job.Parse(document, nil)
	var again job.Definition
	lines, _ := job.Decode(document, &again) // the problems are those of Parse
	f = File{Name: name, Document: document, Definition: d, lines: lines}
	folder := "."
	if name != "-" {
		folder = filepath.Dir(name)
	}
	named, err := readItems(read, &f.Definition, folder)
	if named {
		problems = slices.DeleteFunc(problems, func(p job.Problem) bool { return p.Field == itemsFile })
	}
	if err != nil {
		problems = append(problems, job.Problem{Line: lines.LineOf(itemsFile), Field: itemsFile, Problem: err.Error()})
	}
	changed, err := Absolute(&f.Definition, folder)
	if f.Definition.Image != d.Image { // it was relative, which is the problem of an image exec:
		problems = slices.DeleteFunc(problems, func(p job.Problem) bool { return p.Field == "image" })
	}
	for i := range problems {
		if problems[i].Field == "image" && err != nil {
			problems[i].Problem = err.Error()
		}
	}
	if (changed || named) && len(problems) == 0 {
		if f.Document, err = f.Definition.Canonical(); err != nil {
			problems = []job.Problem{{Line: 1, Problem: err.Error()}}
		}
	}
	return f, problems
}

// texts formats problems of the file.
func (f File) texts(problems []job.Problem) []string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = f.At(p.Line, p.Field, p.Problem)
	}
	return lines
}

// At formats a problem of the file like a compiler. A definition from the command line has no
// file name and no lines.
func (f File) At(line int, field, problem string) string {
	if field != "" {
		problem = field + ": " + problem
	}
	if f.Name == "" {
		return problem
	}
	return fmt.Sprintf("%s:%d: %s", f.Name, line, problem)
}

// Explained adds the file name to the problems in a server's error.
func (f File) Explained(err error) error {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok || len(p.Problems) == 0 {
		return err
	}
	lines := make([]string, len(p.Problems))
	for i, each := range p.Problems {
		lines[i] = f.At(f.lines.LineOf(each.Field), each.Field, each.Problem)
	}
	return argument.Invalid("%s", strings.Join(lines, "\n"))
}

// ContentType returns the media type of the document.
func (f File) ContentType() string {
	if json.Valid(f.Document) {
		return httpkit.TypeJSON
	}
	return httpkit.TypeYAML
}

// Single checks the job of a file for a single run, which needs no id. It returns the
// definition without the fields that only a stored job has, and the names of those that it had.
func Single(name string, document []byte) (d job.Definition, ignored []string, err error) {
	f, problems := parse(nil, name, document)
	problems = slices.DeleteFunc(problems, func(p job.Problem) bool { return p.Field == "id" && f.Definition.ID == "" })
	if len(problems) > 0 {
		return f.Definition, nil, argument.Invalid("%s", strings.Join(f.texts(problems), "\n"))
	}
	d = single(f.Definition)
	ignored, err = leftOut(f.Definition, d)
	return d, ignored, err
}

// leftOut returns the fields of a definition that the one of a single run has not, sorted, without
// the id.
func leftOut(stored, once job.Definition) (fields []string, err error) {
	var members [2]map[string]any
	for i, d := range []job.Definition{stored, once} {
		text, err := json.Marshal(d)
		if err == nil {
			err = json.Unmarshal(text, &members[i])
		}
		if err != nil {
			return nil, fmt.Errorf("cannot compare the definitions: %w", err)
		}
	}
	delete(members[0], "id")
	fields = missing(members[0], members[1], "")
	slices.Sort(fields)
	return fields, nil
}

// missing returns the paths of the members that only the first object has.
func missing(from, in map[string]any, path string) (fields []string) {
	for name, value := range from {
		other, has := in[name]
		if !has {
			fields = append(fields, path+name)
			continue
		}
		inner, is := value.(map[string]any)
		others, _ := other.(map[string]any)
		if is {
			fields = append(fields, missing(inner, others, path+name+".")...)
		}
	}
	return fields
}

// single removes the fields that only a stored job has: its id, what starts it, and the
// constraints and the retention that compare its runs, with their actions.
func single(d job.Definition) job.Definition {
	d.ID, d.Schedule, d.TimeZone, d.Jitter, d.StartAt, d.EndAt = "", "", "", "", "", ""
	d.Schedules, d.Calendars, d.After, d.Sensor, d.Missed, d.StartingDeadline = nil, nil, nil, nil, "", ""
	if d.Retention != nil {
		r := *d.Retention
		r.Newest = nil
		d.Retention = &r
	}
	if d.Constraints != nil {
		c := *d.Constraints
		c.MaxConcurrentRuns, c.RequirePreviousSuccess, c.CatchUp, c.CatchUpWindow = nil, nil, nil, ""
		d.Constraints = &c
	}
	if d.Actions == nil {
		return d
	}
	actions := *d.Actions
	if of := actions.OnConstraintViolation; of != nil && (of.Type == spec.ActionWait || of.Type == spec.ActionKillOld) {
		actions.OnConstraintViolation = nil
	}
	actions.OnViolationOf = maps.Clone(actions.OnViolationOf)
	for _, name := range []spec.Constraint{spec.MaxConcurrentRuns, spec.RequirePreviousSuccess, spec.CatchUpWindow} {
		delete(actions.OnViolationOf, name)
	}
	d.Actions = &actions
	return d
}
