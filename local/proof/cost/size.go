package cost

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
)

// item is an item of the table in DynamoDB's JSON.
type item map[string]map[string]any

// size returns the size of a value in bytes. For a kind that the table does not use, it returns
// the size of the JSON.
func size(value map[string]any) int {
	for kind, v := range value {
		text, isText := v.(string)
		switch {
		case kind == "S" && isText:
			return len(text)
		case kind == "B" && isText:
			return base64.StdEncoding.DecodedLen(len(text)) - strings.Count(text, "=")
		case kind == "N" && isText:
			return units.Number(text)
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(text)
}
