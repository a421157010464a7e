package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/domain/fan"
)

// readItems reads the items of a run from a file: a JSON array, or lines. "-" is standard input.
func (a *app) readItems(name string) (items []json.RawMessage, err error) {
	const most = 2 * fan.MaxItems
	var content []byte
	if name == "-" {
		content, err = io.ReadAll(io.LimitReader(a.Stdin, most+1))
	} else {
		content, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, cli.Missing(name, err)
	}
	if len(content) > most {
		return nil, cli.Wrong("--items: more than %d bytes", most)
	}
	lines, err := jobfile.ParseItems(name, content)
	if err != nil {
		return nil, cli.Wrong("--items: %s", err)
	}
	items = make([]json.RawMessage, len(lines))
	for i, line := range lines {
		if items[i], err = json.Marshal(line); err != nil {
			return nil, fmt.Errorf("cannot encode the items: %w", err)
		}
	}
	return items, nil
}
