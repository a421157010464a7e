package cost

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/units"
)

// item is an item of the table, as DynamoDB's JSON has it.
type item map[string]map[string]any

// size of a value; one of a kind that the table does not have counts as its JSON.
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
