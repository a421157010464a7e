package client

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// pathOf fills the places of a path, in order. An empty or relative part would name another
// route, so it is sent as a part that no route has.
func pathOf(template string, parts ...any) string {
	var b strings.Builder
	for _, part := range parts {
		before, rest, _ := strings.Cut(template, "{")
		_, template, _ = strings.Cut(rest, "}")
		text := fmt.Sprint(part)
		if text == "" || text == "." || text == ".." {
			text = "~" + text
		}
		b.WriteString(before + url.PathEscape(text))
	}
	return b.String() + template
}

// bodyOf returns a body, or nil for a nil pointer: then none is sent.
func bodyOf[T any](body *T) any {
	if body == nil {
		return nil
	}
	return body
}

func setText(v url.Values, name, value string) {
	if value != "" {
		v.Set(name, value)
	}
}

func setNumber(v url.Values, name string, value int64) {
	if value != 0 {
		v.Set(name, strconv.FormatInt(value, 10))
	}
}

func setBool(v url.Values, name string, value *bool) {
	if value != nil {
		v.Set(name, strconv.FormatBool(*value))
	}
}

func setTime(v url.Values, name string, value time.Time) {
	if !value.IsZero() {
		v.Set(name, value.UTC().Format(time.RFC3339Nano))
	}
}

func setList(v url.Values, name string, values []string) {
	if len(values) > 0 {
		v.Set(name, strings.Join(values, ","))
	}
}

// placeOf returns the place of the next page as a text; "" behind the last page.
func placeOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case *int64:
		if v != nil {
			return strconv.FormatInt(*v, 10)
		}
	case *string:
		if v != nil {
			return *v
		}
	}
	return ""
}

func numberOf(place string) int64 {
	n, _ := strconv.ParseInt(place, 10, 64) // placeOf wrote it
	return n
}
