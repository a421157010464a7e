package awsfake

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/units"
)

// value is an attribute value in the API's JSON: exactly one field is set. Sets
// are not supported. Values are not changed after they were read.
type value struct {
	S    *string           `json:",omitempty"`
	N    *string           `json:",omitempty"`
	B    *[]byte           `json:",omitempty"`
	BOOL *bool             `json:",omitempty"`
	NULL *bool             `json:",omitempty"`
	L    *[]value          `json:",omitempty"`
	M    *map[string]value `json:",omitempty"`
}

// item is an item, a key, or the values of an expression.
type item map[string]value

// kind returns the type of the value; "" if it is malformed.
func (v value) kind() string {
	kind, count := "", 0
	is := func(name string, set bool) {
		if set {
			kind, count = name, count+1
		}
	}
	is("S", v.S != nil)
	is("N", v.N != nil)
	is("B", v.B != nil)
	is("BOOL", v.BOOL != nil)
	is("NULL", v.NULL != nil)
	is("L", v.L != nil)
	is("M", v.M != nil)
	if count != 1 {
		return ""
	}
	return kind
}

// check refuses malformed values of a request and brings numbers into
// DynamoDB's form.
func (i item) check() error {
	for name, v := range i {
		if err := v.check(); err != nil {
			return invalid("attribute %s: %v", name, err)
		}
	}
	return nil
}

func (v value) check() (err error) {
	switch {
	case v.kind() == "":
		return errors.New("supplied AttributeValue must contain exactly one of the supported data types")
	case v.N != nil:
		*v.N, err = decimal(*v.N)
		return err
	case v.L != nil:
		for _, each := range *v.L {
			err = errors.Join(err, each.check())
		}
	case v.M != nil:
		for _, each := range *v.M {
			err = errors.Join(err, each.check())
		}
	}
	return err
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

func number(n int) value { return value{N: new(strconv.Itoa(n))} }

// rational returns the number.
func (v value) rational() *big.Rat {
	n, _ := new(big.Rat).SetString(*v.N) // decimal has checked it
	return n
}

// add returns the sum of two numbers, or with sign -1 their difference.
func add(a, b value, sign int64) (value, error) {
	product := new(big.Rat).Mul(b.rational(), big.NewRat(sign, 1))
	sum, err := decimal(new(big.Rat).Add(a.rational(), product).FloatString(maxDigits))
	return value{N: &sum}, err
}

func equal(a, b value) bool { return reflect.DeepEqual(a, b) }

func equalItems(a, b item) bool { return reflect.DeepEqual(a, b) }

// compare orders two values of one scalar type. It returns false for others.
func compare(a, b value) (order int, ok bool) {
	switch {
	case a.S != nil && b.S != nil:
		return strings.Compare(*a.S, *b.S), true
	case a.B != nil && b.B != nil:
		return bytes.Compare(*a.B, *b.B), true
	case a.N != nil && b.N != nil:
		return a.rational().Cmp(b.rational()), true
	}
	return 0, false
}

// order returns text with the order of a key's values. Numbers in keys must be
// integers of 64 bits.
func (v value) order() (string, error) {
	switch {
	case v.S != nil:
		return *v.S, nil
	case v.B != nil:
		return string(*v.B), nil
	}
	n, err := strconv.ParseInt(*v.N, 10, 64)
	if err != nil {
		return "", invalid("the fake supports no key %s, want an integer of 64 bits", *v.N)
	}
	return fmt.Sprintf("%020d", uint64(n)^1<<63), nil //nolint:gosec // keeps the bits
}

// size returns the size of a value in bytes, as the Developer Guide counts it.
func size(v value) int {
	switch {
	case v.S != nil:
		return len(*v.S)
	case v.B != nil:
		return len(*v.B)
	case v.N != nil:
		return units.Number(*v.N)
	case v.L != nil:
		total := 3
		for _, each := range *v.L {
			total += 1 + size(each)
		}
		return total
	case v.M != nil:
		total := 3
		for name, each := range *v.M {
			total += 1 + len(name) + size(each)
		}
		return total
	}
	return 1
}

// bytes returns the size of an item.
func (i item) bytes() int {
	total := 0
	for name, v := range i {
		total += len(name) + size(v)
	}
	return total
}
