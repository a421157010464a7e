package jobfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/importer"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// ProposeID proposes the id of a job from its command: the name of the script, else of the program.
func ProposeID(command []string) string {
	name := filepath.Base(command[0])
	if len(command) > 1 && strings.Contains(command[1], ".") {
		name = filepath.Base(command[1])
	}
	return importer.ID(strings.TrimSuffix(name, filepath.Ext(name)))
}

// jobText is the file that Create writes. JSON strings are strings of YAML.
const jobText = `# yaml-language-server: $schema=./%[1]s
# The job %[2]s. An editor completes the fields; /docs/shared-domain-job.html of a server explains them.
id: %[2]s

# A name in PATH, or a path. It and arguments that name files are relative to this folder.
image: %[3]s
command: %[4]s

# Minute, hour, day of the month, month, day of the week. See "sortie jobs simulate".
schedule: %[5]s
timeZone: %[6]s

# A failed attempt is repeated after a growing delay.
retryConfig: {maxRetries: %[7]s, initialDelay: 30s}

constraints:
  # A time to run is skipped while the run before it has not ended.
  maxConcurrentRuns: 1
  # A longer run is stopped, and fails.
  maxAllowedRunTime: 1h

# What the program has in its environment.
# env: {LEVEL: info}

# The file that the program writes can be downloaded, for a day or as long as retention says.
# output: {path: report.csv, contentType: text/csv}
# retention: {outputs: 720h}

# An end of a run can call an address; {type: notify} sends messages to Slack and others.
# actions:
#   onFailure: {type: webhook, parameters: {url: "https://example.org/alert"}}
#   onSkip: {type: webhook, parameters: {url: "https://example.org/alert"}}
`

// Create writes a new file of a job, with comments about what else it can say, and the schema
// beside it. It returns the name of the file. The error for an existing file is fs.ErrExist.
func Create(folder string, d job.Definition, retries string) (string, error) {
	quoted := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // strings and lists of them
		}
		return string(text)
	}
	text := fmt.Sprintf(jobText, SchemaName, d.ID, quoted(d.Image), quoted(append([]string{}, d.Command...)), quoted(d.Schedule), quoted(d.TimeZone), retries)
	name := filepath.Join(folder, d.ID+".yaml")
	if err := WriteNew(name, text); err != nil {
		return "", err
	}
	schema, err := fileSchema()
	if err != nil {
		return "", err
	}
	if err := WriteNew(filepath.Join(folder, SchemaName), string(schema)); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return name, nil
}

// WriteNew writes a new file. The error for an existing one is fs.ErrExist.
func WriteNew(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // G302: a file of the user's project
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w, want another id or folder", name, fs.ErrExist)
	}
	if err == nil {
		_, err = io.WriteString(file, text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return nil
}
