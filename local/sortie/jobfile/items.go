package jobfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fan"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// ParseItems returns the items of a file: a JSON array, or lines without the empty ones. The error
// names the file, and the number of the line with an invalid item.
func ParseItems(name string, content []byte) ([]string, error) {
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	items, err := fan.Read(content, "")
	if err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.Replace(err.Error(), "the output", "the file", 1))
	}
	if err := fan.Check(fan.ListOf(items)); err != nil {
		return nil, fmt.Errorf("%s: %w", at(name, content, items), err)
	}
	return items, nil
}

// at returns the name of a file with the number of the first invalid line; the name alone for a JSON
// array, and for items that are invalid together.
func at(name string, content []byte, items []string) string {
	if json.Valid(content) {
		return name
	}
	for i := range items {
		if fan.Check(fan.ListOf(items[i:i+1])) == nil {
			continue
		}
		number := 0
		for line := range bytes.Lines(content) {
			if number++; strings.TrimRight(string(line), "\r\n") == items[i] {
				return fmt.Sprintf("%s:%d", name, number)
			}
		}
	}
	return name
}

// readItems replaces items.file of a definition by the items of the file, which is in the folder
// of the job file or below it. It reports whether the definition names a file. A nil read reads
// none.
func readItems(read Reader, d *job.Definition, folder string) (named bool, err error) {
	if read == nil || d.Items == nil || d.Items.File == "" {
		return false, nil
	}
	if d.Items.From != nil {
		return true, fmt.Errorf("no meaning with from; leave one out")
	}
	if !filepath.IsLocal(d.Items.File) {
		return true, fmt.Errorf("%q is not in the folder of the job file, want a relative path below it", d.Items.File)
	}
	name := filepath.Join(folder, d.Items.File)
	content, err := read(name, 2*fan.MaxItems+1)
	if err != nil {
		return true, err
	}
	if len(content) > 2*fan.MaxItems {
		return true, fmt.Errorf("%s: more than %d bytes, want less", name, 2*fan.MaxItems)
	}
	texts, err := ParseItems(name, content)
	if err != nil {
		return true, err
	}
	values, size := make([]spec.Value, len(texts)), 0
	for i, text := range texts {
		values[i] = spec.TextValue(text)
		size += len(values[i]) + 1
	}
	if size > limit.JobDocument {
		return true, fmt.Errorf("%s: %d bytes in a job, want at most %d; start runs with sortie jobs run JOB --items FILE", name, size, limit.JobDocument)
	}
	d.Items = &job.Items{List: values}
	return true, nil
}

// fileSchema returns the JSON Schema of job files. They may also name a file of items.
func fileSchema() ([]byte, error) {
	const before = `"oneOf": [`
	text := contract.JobSchema()
	items := bytes.Index(text, []byte("\"items\": {\n          \"description\""))
	if items < 0 {
		return nil, fmt.Errorf("the schema of jobs has no items")
	}
	from := items + bytes.Index(text[items:], []byte(before)) + len(before)
	file := `
            {
              "type": "object",
              "additionalProperties": false,
              "required": ["file"],
              "properties": {"file": {"type": "string", "description": "A file in the folder of the job file with a JSON array, or an item on each line."}}
            },`
	return append(append(bytes.Clone(text[:from]), file...), text[from:]...), nil
}
