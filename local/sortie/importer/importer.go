// Package importer converts the job files of other programs into job files of Sortie: crontabs,
// manifests of Kubernetes, job files of Nomad and workflows of GitHub Actions. It is pure.
//
// Each job that it returns is valid. Comments of the job name every field of the source without
// a counterpart, by its path. A job whose program cannot be converted is an error with a line.
package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// Source is a file to convert.
type Source struct {
	// Name is the path of the file, or "-" for standard input.
	Name string
	Text []byte
	// TimeZone is the zone of a crontab without CRON_TZ; empty means UTC.
	TimeZone string
	// System says that the lines of a crontab have users. Otherwise the name of the file or the
	// user root in a line says it.
	System bool
	// User says that the lines of a crontab have no users, whatever they look like.
	User bool
}

// Error is a problem of a source. Line is a line number, from 1.
type Error struct {
	Line    int
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

func wrong(line int, format string, args ...any) *Error {
	return &Error{line, fmt.Sprintf(format, args...)}
}

// The limits of a source: its size in bytes, and its jobs.
const (
	SourceLimit = 1 << 20
	maxJobs     = 1000
)

// converters are the programs whose files Convert reads. They also return what they leave out.
var converters = map[string]func(Source) ([]Job, []*Error, *Error){
	"crontab": crontab, "kubernetes": kubernetes, "nomad": nomad, "github": github,
}

// Convert converts a file of a program: crontab, kubernetes, nomad or github. The second result
// names the parts of the file that are no jobs. Errors are of type *Error.
func Convert(program string, s Source) ([]Job, []*Error, error) {
	s.Text = bytes.TrimPrefix(s.Text, []byte("\uFEFF"))
	if len(s.Text) > SourceLimit {
		return nil, nil, wrong(1, "more than %d bytes, want at most that", SourceLimit)
	}
	for i, line := range bytes.Split(s.Text, []byte{'\n'}) {
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return nil, nil, wrong(i+1, "binary data, want text in UTF-8")
		}
	}
	jobs, left, problem := converters[program](s)
	if problem != nil {
		return nil, nil, problem
	}
	if len(jobs) > maxJobs {
		return nil, nil, wrong(jobs[maxJobs].line, "more than %d jobs, want fewer in a file", maxJobs)
	}
	ids := map[string]int{}
	for i := range jobs {
		j := &jobs[i]
		j.Comments = append([]string{fmt.Sprintf("Imported from %s, line %d.", s.Name, j.line)}, j.Comments...)
		j.unique(ids)
		if problem := j.settle(); problem != nil {
			return nil, nil, problem
		}
	}
	return jobs, left, nil
}

// maxID is the maximum length of the id of a job.
const maxID = 63

// notID matches what an id cannot have.
var notID = regexp.MustCompile(`[^a-z0-9]+`)

// ID returns the id of a job that a text suggests: lower-case letters, digits and hyphens.
func ID(text string) string {
	id := strings.Trim(notID.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return cmp.Or(strings.TrimRight(id[:min(len(id), maxID)], "-"), "job")
}

// shown returns a value for a comment or an error.
func shown(text string) string { return limit.Cut(strings.Join(strings.Fields(text), " "), 160) }
