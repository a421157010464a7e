package intrinsic

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// maxItems limits the length of a States.ArrayRange (AWS: 1000).
const maxItems = 1000

// whole returns an argument as an integer, rounded half up as Java's Math.round
// does [recorded].
func whole(args []any, i int) (int64, error) {
	n, ok := args[i].(json.Number)
	if !ok {
		return 0, fmt.Errorf("argument %d is not a number", i+1)
	}
	if v, exact := document.Int(n); exact {
		return v, nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.Abs(f) >= 1<<62 {
		return 0, fmt.Errorf("argument %d is too large", i+1)
	}
	return int64(math.Floor(f + 0.5)), nil
}

func mathAdd(_ Env, args []any, _ string) (any, error) {
	a, err := whole(args, 0)
	if err != nil {
		return nil, err
	}
	b, err := whole(args, 1)
	if err != nil {
		return nil, err
	}
	sum := a + b
	if a > 0 && b > 0 && sum < 0 || a < 0 && b < 0 && sum >= 0 {
		return nil, errors.New("the sum is too large")
	}
	return number(sum), nil
}

// mathRandom returns a number in [first argument, second argument). A seed
// makes it reproducible.
func mathRandom(env Env, args []any, _ string) (any, error) {
	from, err := whole(args, 0)
	if err != nil {
		return nil, err
	}
	to, err := whole(args, 1)
	if err != nil {
		return nil, err
	}
	if to <= from {
		return nil, errors.New("the end is not greater than the start")
	}
	var bits uint64
	if len(args) == 3 {
		seed, err := whole(args, 2)
		if err != nil {
			return nil, err
		}
		bits = scramble(uint64(seed)) //nolint:gosec // any bits will do
	} else {
		bits = env.Random()
	}
	return number(from + int64(bits%uint64(to-from))), nil //nolint:gosec // below to-from
}

// scramble spreads a seed over 64 bits (the finaliser of SplitMix64).
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// list returns the first argument of the array functions.
func list(args []any) ([]any, error) {
	items, ok := args[0].([]any)
	if !ok {
		return nil, errors.New("argument 1 is not an array")
	}
	return items, nil
}

func array(_ Env, args []any, _ string) (any, error) { return args, nil }

func arrayPartition(_ Env, args []any, _ string) (any, error) {
	items, err := list(args)
	if err != nil {
		return nil, err
	}
	size, err := whole(args, 1)
	if err != nil {
		return nil, err
	}
	if size < 1 {
		return nil, errors.New("the size is not positive")
	}
	chunks := []any{}
	for len(items) > 0 {
		n := min(size, int64(len(items)))
		chunks = append(chunks, items[:n:n])
		items = items[n:]
	}
	return chunks, nil
}

func arrayContains(_ Env, args []any, _ string) (any, error) {
	items, err := list(args)
	if err != nil {
		return nil, err
	}
	return contains(items, args[1]), nil
}

func contains(items []any, value any) bool {
	for _, item := range items {
		if document.Equal(item, value) {
			return true
		}
	}
	return false
}

// arrayRange includes the end if a step reaches it exactly.
func arrayRange(_ Env, args []any, _ string) (any, error) {
	var bounds [3]int64
	for i := range bounds {
		var err error
		if bounds[i], err = whole(args, i); err != nil {
			return nil, err
		}
	}
	from, to, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return nil, errors.New("the step is 0")
	}
	items := []any{}
	for at := from; step > 0 && at <= to || step < 0 && at >= to; at += step {
		if len(items) == maxItems {
			return nil, fmt.Errorf("the range has more than %d items", maxItems)
		}
		items = append(items, number(at))
	}
	return items, nil
}

func arrayGetItem(_ Env, args []any, _ string) (any, error) {
	items, err := list(args)
	if err != nil {
		return nil, err
	}
	index, err := whole(args, 1)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= int64(len(items)) {
		return nil, fmt.Errorf("index %d out of range of an array of %d", index, len(items))
	}
	return items[index], nil
}

func arrayLength(_ Env, args []any, _ string) (any, error) {
	items, err := list(args)
	return number(int64(len(items))), err
}

func arrayUnique(_ Env, args []any, _ string) (any, error) {
	items, err := list(args)
	if err != nil {
		return nil, err
	}
	unique := []any{}
	for _, item := range items {
		if !contains(unique, item) {
			unique = append(unique, item)
		}
	}
	return unique, nil
}
