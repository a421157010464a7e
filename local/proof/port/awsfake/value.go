package awsfake

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
)

// value is an attribute value; nil is a malformed value. Sets are not supported. Values are not
// changed after they were decoded.
type value = types.AttributeValue

// item is an item, a key, or the values of an expression.
type item map[string]value

// attribute is a value in the JSON of the API. Exactly one field is set.
type attribute struct {
	S    *string               `json:",omitempty"`
	N    *string               `json:",omitempty"`
	B    *[]byte               `json:",omitempty"`
	BOOL *bool                 `json:",omitempty"`
	NULL *bool                 `json:",omitempty"`
	L    *[]attribute          `json:",omitempty"`
	M    *map[string]attribute `json:",omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (i item) MarshalJSON() ([]byte, error) {
	if i == nil {
		return []byte("null"), nil
	}
	return json.Marshal(attributesOf(i))
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *item) UnmarshalJSON(text []byte) error {
	var attributes map[string]attribute
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.DisallowUnknownFields()
	if err := reader.Decode(&attributes); err != nil || attributes == nil {
		return err
	}
	*i = valuesOf(attributes)
	return nil
}

func attributesOf(values map[string]value) map[string]attribute {
	all := make(map[string]attribute, len(values))
	for name, v := range values {
		all[name] = attributeOf(v)
	}
	return all
}

func valuesOf(attributes map[string]attribute) map[string]value {
	all := make(map[string]value, len(attributes))
	for name, a := range attributes {
		all[name] = a.value()
	}
	return all
}

func attributeOf(v value) (a attribute) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		a.S = &v.Value
	case *types.AttributeValueMemberN:
		a.N = &v.Value
	case *types.AttributeValueMemberB:
		a.B = &v.Value
	case *types.AttributeValueMemberBOOL:
		a.BOOL = &v.Value
	case *types.AttributeValueMemberNULL:
		a.NULL = &v.Value
	case *types.AttributeValueMemberL:
		each := make([]attribute, len(v.Value))
		for i := range each {
			each[i] = attributeOf(v.Value[i])
		}
		a.L = &each
	case *types.AttributeValueMemberM:
		each := attributesOf(v.Value)
		a.M = &each
	}
	return a
}

func (a attribute) value() value {
	var all []value
	if a.S != nil {
		all = append(all, &types.AttributeValueMemberS{Value: *a.S})
	}
	if a.N != nil {
		all = append(all, &types.AttributeValueMemberN{Value: *a.N})
	}
	if a.B != nil {
		all = append(all, &types.AttributeValueMemberB{Value: *a.B})
	}
	if a.BOOL != nil {
		all = append(all, &types.AttributeValueMemberBOOL{Value: *a.BOOL})
	}
	if a.NULL != nil {
		all = append(all, &types.AttributeValueMemberNULL{Value: *a.NULL})
	}
	if a.L != nil {
		each := make([]value, len(*a.L))
		for i := range each {
			each[i] = (*a.L)[i].value()
		}
		all = append(all, &types.AttributeValueMemberL{Value: each})
	}
	if a.M != nil {
		all = append(all, &types.AttributeValueMemberM{Value: valuesOf(*a.M)})
	}
	if len(all) != 1 {
		return nil
	}
	return all[0]
}

// kind returns the type of a value, or "" if the value is malformed.
func kind(v value) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	}
	return ""
}

// checked returns the item with its numbers in DynamoDB's form. It returns an error for a
// malformed value.
func (i item) checked() (item, error) {
	is, copied := i, false
	for name, v := range i {
		normal, err := checked(v)
		if err != nil {
			return nil, invalid("attribute %s: %v", name, err)
		}
		if normal != v {
			if !copied {
				is, copied = maps.Clone(i), true
			}
			is[name] = normal
		}
	}
	return is, nil
}

// checked returns v itself if it is in DynamoDB's form already, and otherwise a value in that
// form.
func checked(v value) (value, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberN:
		normal, err := decimal(v.Value)
		if err != nil || normal == v.Value {
			return v, err
		}
		return &types.AttributeValueMemberN{Value: normal}, nil
	case *types.AttributeValueMemberL:
		all, same := make([]value, len(v.Value)), true
		for i, each := range v.Value {
			var err error
			if all[i], err = checked(each); err != nil {
				return nil, err
			}
			same = same && all[i] == each
		}
		if same {
			return v, nil
		}
		return &types.AttributeValueMemberL{Value: all}, nil
	case *types.AttributeValueMemberM:
		all, same := make(map[string]value, len(v.Value)), true
		for name, each := range v.Value {
			var err error
			if all[name], err = checked(each); err != nil {
				return nil, err
			}
			same = same && all[name] == each
		}
		if same {
			return v, nil
		}
		return &types.AttributeValueMemberM{Value: all}, nil
	}
	if kind(v) == "" {
		return nil, errors.New("supplied AttributeValue must contain exactly one of the supported data types")
	}
	return v, nil
}

// maxDigits is the precision of numbers.
const maxDigits = 38

// decimal returns a number without an exponent and without redundant zeros.
func decimal(text string) (string, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/_xXpPbBoO") {
		return "", fmt.Errorf("the parameter cannot be converted to a numeric value: %s", text)
	}
	normal := n.FloatString(maxDigits)
	normal = strings.TrimRight(strings.TrimRight(normal, "0"), ".")
	if digits := strings.Trim(strings.ReplaceAll(normal, ".", ""), "-0"); len(digits) > maxDigits {
		return "", fmt.Errorf("attempting to store more than %d significant digits in a number: %s", maxDigits, text)
	}
	return normal, nil
}

// integer returns the number if it is an integer of 64 bits, and false otherwise.
func integer(v value) (int64, bool) {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		i, err := strconv.ParseInt(n.Value, 10, 64)
		return i, err == nil
	}
	return 0, false
}

// rational returns the number, or nil for a value that is not a number.
func rational(v value) *big.Rat {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return nil
	}
	r, _ := new(big.Rat).SetString(n.Value) // decimal has validated it
	return r
}

// add returns a + b, or a - b if sign is -1.
func add(a, b value, sign int64) (value, error) {
	product := new(big.Rat).Mul(rational(b), big.NewRat(sign, 1))
	sum, err := decimal(new(big.Rat).Add(rational(a), product).FloatString(maxDigits))
	return &types.AttributeValueMemberN{Value: sum}, err
}

func equal(a, b value) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberB:
		b, ok := b.(*types.AttributeValueMemberB)
		return ok && bytes.Equal(a.Value, b.Value)
	case *types.AttributeValueMemberBOOL:
		b, ok := b.(*types.AttributeValueMemberBOOL)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberNULL:
		b, ok := b.(*types.AttributeValueMemberNULL)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberL:
		b, ok := b.(*types.AttributeValueMemberL)
		return ok && slices.EqualFunc(a.Value, b.Value, equal)
	case *types.AttributeValueMemberM:
		b, ok := b.(*types.AttributeValueMemberM)
		return ok && equalItems(a.Value, b.Value)
	}
	return a == nil && b == nil
}

func equalItems(a, b item) bool { return (a == nil) == (b == nil) && maps.EqualFunc(a, b, equal) }

// compare compares two values of the same scalar type. It returns false for other values.
func compare(a, b value) (order int, ok bool) {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		if b, ok := b.(*types.AttributeValueMemberS); ok {
			return strings.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberB:
		if b, ok := b.(*types.AttributeValueMemberB); ok {
			return bytes.Compare(a.Value, b.Value), true
		}
	case *types.AttributeValueMemberN:
		if x, ok := integer(a); ok {
			if y, ok := integer(b); ok {
				return cmp.Compare(x, y), true
			}
		}
		if y := rational(b); y != nil {
			return rational(a).Cmp(y), true
		}
	}
	return 0, false
}

// order returns text that sorts like the key value. It returns an error for a number that is
// not an integer of 64 bits.
func order(v value) (string, error) {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value, nil
	case *types.AttributeValueMemberB:
		return string(v.Value), nil
	case *types.AttributeValueMemberN:
		n, err := strconv.ParseInt(v.Value, 10, 64)
		if err != nil {
			return "", invalid("the fake supports no key %s, want an integer of 64 bits", v.Value)
		}
		return padded(uint64(n) ^ 1<<63), nil //nolint:gosec // keeps the bits
	}
	return "", invalid("the fake supports no key of type %s", kind(v))
}

// padded returns the number with 20 digits.
func padded(n uint64) string {
	const zeros = "00000000000000000000"
	digits := strconv.FormatUint(n, 10)
	return zeros[len(digits):] + digits
}

// size returns the size of a value in bytes, computed as in the Developer Guide.
func size(v value) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return units.Number(v.Value)
	case *types.AttributeValueMemberL:
		total := 3
		for _, each := range v.Value {
			total += 1 + size(each)
		}
		return total
	case *types.AttributeValueMemberM:
		total := 3
		for name, each := range v.Value {
			total += 1 + len(name) + size(each)
		}
		return total
	}
	return 1
}

// bytes returns the size of an item in bytes.
func (i item) bytes() int {
	total := 0
	for name, v := range i {
		total += len(name) + size(v)
	}
	return total
}
