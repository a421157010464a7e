package openai

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// parse decodes a JSON object into the struct that v points to. It refuses members that the
// struct does not have, except the ignored ones. Fault: InvalidRequest, with the field if one
// member is at fault.
func parse(body []byte, v any, ignored ...string) error {
	members, err := membersIn(body)
	if err != nil {
		return err
	}
	return parseMembers(members, v, ignored...)
}

// membersIn returns the members of a JSON object.
func membersIn(body []byte) (members map[string]json.RawMessage, err error) {
	if !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidRequest, "invalid UTF-8 in the body")
	}
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, fault.New(fault.InvalidRequest, "malformed body, want a JSON object")
	}
	return members, nil
}

// parseMembers is parse for the members of an object.
func parseMembers(members map[string]json.RawMessage, v any, ignored ...string) error {
	known := slices.Concat(ignored, membersOf(reflect.TypeOf(v).Elem()))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) {
			return fault.Invalid(name, "unknown member %.80q", name)
		}
		members[name] = plainNumber(members[name])
	}
	plain, err := json.Marshal(members)
	if err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "malformed body, want a JSON object")
	}
	err = json.Unmarshal(plain, v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		field := wrong.Field
		for _, embedded := range []string{"sampling.", "choosing.", "tuning.", "tools.", "chatOptions.", "probabilities."} {
			if rest, ok := strings.CutPrefix(field, embedded); ok {
				field = rest
				break
			}
		}
		return fault.Invalid(field, "%s is of type %.40s, want %s", field, wrong.Value, fault.Kind(wrong.Type))
	}
	if err != nil {
		return fault.Wrap(err, fault.InvalidRequest, "malformed body, want a JSON object")
	}
	return nil
}

// plainNumber rewrites an integer such as 36.0 or 1e3 in plain digits. JSON Schema accepts
// these forms as integers. It returns every other value unchanged.
func plainNumber(value json.RawMessage) json.RawMessage {
	const exact = 1 << 53 // above it float64 does not represent every integer
	number, err := strconv.ParseFloat(string(value), 64)
	if err != nil || number != math.Trunc(number) || math.Abs(number) > exact || !strings.ContainsAny(string(value), ".eE") {
		return value
	}
	return strconv.AppendInt(nil, int64(number), 10)
}

// membersOf returns the JSON names of the fields of a struct, including those of embedded
// structs.
func membersOf(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("json"); name != "" && len(f.Index) <= 2 {
			names = append(names, name)
		}
	}
	return names
}

// given reports whether a member is present and not null.
func given(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// filled reports whether a member is present and not null, false, 0 or empty.
func filled(value json.RawMessage) bool {
	switch strings.Join(strings.Fields(string(value)), "") {
	case "", "null", "false", "0", "0.0", `""`, "[]", "{}":
		return false
	}
	return true
}

// unsupported returns an InvalidParams for a member that the engines do not support.
func unsupported(field, want string) error {
	f := fault.New(fault.InvalidParams, "%s is not supported, want %s", field, want)
	f.Field = field
	return f
}

// refuse returns an InvalidParams for the first member that is filled, or nil.
func refuse(members ...member) error {
	for _, m := range members {
		if filled(m.value) {
			return unsupported(m.name, "a request without it")
		}
	}
	return nil
}

// member is a member of a request whose values are restricted.
type member struct {
	name  string
	value json.RawMessage
}

// texts decodes a string or an array of strings. It returns nil if the member is missing or
// null. Fault: InvalidRequest with the field.
func texts(field string, value json.RawMessage) ([]string, error) {
	if !given(value) {
		return nil, nil
	}
	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}, nil
	}
	var many []string
	if json.Unmarshal(value, &many) != nil {
		return nil, fault.Invalid(field, "malformed %s, want a text or an array of texts", field)
	}
	return many, nil
}
