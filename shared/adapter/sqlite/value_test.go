package sqlite_test

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
)

func yield() { runtime.Gosched() }

type (
	state   string
	version int
	body    []byte
)

func TestValuesComeBack(t *testing.T) {
	t.Parallel()
	db := setup(t)
	text, none := "text", (*string)(nil)
	tests := []struct {
		name string
		arg  any
		into any // a pointer to a zero value
		want any
	}{
		{"string", "a\x00b", new(string), "a\x00b"},
		{"empty string", "", new(string), ""},
		{"int", 7, new(int), 7},
		{"int64", int64(-1 << 63), new(int64), int64(-1 << 63)},
		{"uint32", uint32(1<<32 - 1), new(int64), int64(1<<32 - 1)},
		{"float", 0.5, new(float64), 0.5},
		{"float from int", 3, new(float64), 3.0},
		{"true", true, new(bool), true},
		{"false", false, new(bool), false},
		{"bytes", []byte{0, 255}, new([]byte), []byte{0, 255}},
		{"text as bytes", "abc", new([]byte), []byte("abc")},
		{"named string", state("Running"), new(state), state("Running")},
		{"named int", version(4), new(version), version(4)},
		{"named bytes", body("{}"), new(body), body("{}")},
		{"text as named bytes", "{}", new(body), body("{}")},
		{"nil", nil, new(*string), none},
		{"nil pointer", none, new(*string), none},
		{"nil bytes", []byte(nil), new([]byte), []byte(nil)},
		{"pointer", &text, new(*string), &text},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
				return tx.QueryRow("SELECT ?", test.arg).Scan(test.into)
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := reflect.ValueOf(test.into).Elem().Interface(); !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %#v, want %#v", got, test.want)
			}
		})
	}
}

func TestUnsupportedValues(t *testing.T) {
	t.Parallel()
	db := setup(t)
	tests := []struct {
		name string
		arg  any
		into []any
	}{
		{"a time", time.Unix(0, 0), []any{new(string)}},
		{"a map", map[string]int{}, []any{new(string)}},
		{"null into a string", nil, []any{new(string)}},
		{"text into an int", "7", []any{new(int)}},
		{"too big", 300, []any{new(int8)}},
		{"not a pointer", 7, []any{7}},
		{"too many destinations", 7, []any{new(int), new(int)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := db.Read(t.Context(), func(tx *sqlite.Tx) error {
				return tx.QueryRow("SELECT ?", test.arg).Scan(test.into...)
			})
			if err == nil {
				t.Fatal("got success")
			}
		})
	}
}
