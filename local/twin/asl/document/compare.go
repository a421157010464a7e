package document

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Equal reports whether two values are equal: numbers by value, objects
// regardless of order.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		return ok && Compare(x, y) == 0
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !Equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case *Object:
		y, ok := b.(*Object)
		if !ok || x.Len() != y.Len() {
			return false
		}
		for _, m := range x.members {
			other, found := y.Get(m.Key)
			if !found || !Equal(m.Value, other) {
				return false
			}
		}
		return true
	default:
		switch b.(type) {
		case []any, *Object:
			return false
		}
		return a == b
	}
}

// Compare compares two numbers: -1, 0 or 1. Integers of any size are compared
// exactly, everything else as doubles, as in Step Functions.
func Compare(a, b json.Number) int {
	if a == b {
		return 0
	}
	x, errX := strconv.ParseInt(string(a), 10, 64)
	y, errY := strconv.ParseInt(string(b), 10, 64)
	if errX == nil && errY == nil {
		return order(x, y)
	}
	if integer(a) && integer(b) {
		bigX, okX := new(big.Int).SetString(string(a), 10)
		bigY, okY := new(big.Int).SetString(string(b), 10)
		if okX && okY {
			return bigX.Cmp(bigY)
		}
	}
	// A number out of range becomes an infinity, which compares correctly.
	floatX, _ := strconv.ParseFloat(string(a), 64)
	floatY, _ := strconv.ParseFloat(string(b), 64)
	return order(floatX, floatY)
}

func integer(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }

func order[T int64 | float64](x, y T) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	default:
		return 0
	}
}

// Int returns a number that an int64 can represent: 3, and also 3.0 and 3e0.
func Int(n json.Number) (int64, bool) {
	if v, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return v, true
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || f >= 1<<63 || f < -1<<63 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}
