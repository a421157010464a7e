package intrinsic

import (
	"crypto/md5"  //nolint:gosec // States.Hash offers it
	"crypto/sha1" //nolint:gosec // States.Hash offers it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/local/twin/asl/document"
)

// maxText limits the text of a hash or a base64 function (AWS: 10,000
// characters).
const maxText = 10_000

func text(args []any, i int) (string, error) {
	s, ok := args[i].(string)
	if !ok {
		return "", fmt.Errorf("argument %d is not a string", i+1)
	}
	return s, nil
}

func shortText(args []any, i int) (string, error) {
	s, err := text(args, i)
	if err == nil && utf8.RuneCountInString(s) > maxText {
		err = fmt.Errorf("argument %d is longer than %d characters", i+1, maxText)
	}
	return s, err
}

// format replaces each {} of the template by the next argument.
func format(_ Env, args []any, template string) (any, error) {
	if _, err := text(args, 0); err != nil {
		return nil, err
	}
	var out strings.Builder
	next := 1
	for i := 0; i < len(template); i++ {
		switch c := template[i]; {
		case c == '\\' && i+1 < len(template) && strings.IndexByte(`'{}\`, template[i+1]) >= 0:
			i++
			out.WriteByte(template[i])
		case c == '{' && i+1 < len(template) && template[i+1] == '}':
			if next >= len(args) {
				return nil, errors.New("more placeholders than arguments")
			}
			javaText(&out, args[next])
			next++
			i++
		default:
			out.WriteByte(c)
		}
	}
	if next < len(args) {
		return nil, errors.New("more arguments than placeholders")
	}
	return out.String(), nil
}

// javaText formats a value as Java's toString does, which Step Functions uses
// for objects and lists [recorded].
func javaText(out *strings.Builder, value any) {
	switch v := value.(type) {
	case string:
		out.WriteString(v)
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				out.WriteString(", ")
			}
			javaText(out, item)
		}
		out.WriteByte(']')
	case *document.Object:
		out.WriteByte('{')
		for i, m := range v.Members() {
			if i > 0 {
				out.WriteString(", ")
			}
			out.WriteString(m.Key + "=")
			javaText(out, m.Value)
		}
		out.WriteByte('}')
	default:
		out.WriteString(document.String(v))
	}
}

// stringToJSON returns null for a blank text [recorded].
func stringToJSON(_ Env, args []any, _ string) (any, error) {
	s, err := text(args, 0)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	return document.Parse([]byte(s))
}

func jsonToString(_ Env, args []any, _ string) (any, error) {
	return document.String(args[0]), nil
}

func base64Encode(_ Env, args []any, _ string) (any, error) {
	s, err := shortText(args, 0)
	return base64.StdEncoding.EncodeToString([]byte(s)), err
}

func base64Decode(_ Env, args []any, _ string) (any, error) {
	s, err := shortText(args, 0)
	if err != nil {
		return nil, err
	}
	bytes, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		bytes, err = base64.RawStdEncoding.DecodeString(s)
	}
	if err != nil {
		return nil, errors.New("the text is not base64")
	}
	return strings.ToValidUTF8(string(bytes), "\ufffd"), nil
}

func hash(_ Env, args []any, _ string) (any, error) {
	data, ok := args[0].(string)
	if !ok {
		data = document.String(args[0])
	}
	if utf8.RuneCountInString(data) > maxText {
		return nil, fmt.Errorf("the data is longer than %d characters", maxText)
	}
	algorithm, err := text(args, 1)
	if err != nil {
		return nil, err
	}
	var sum []byte
	switch algorithm {
	case "MD5":
		s := md5.Sum([]byte(data)) //nolint:gosec // asked for by name
		sum = s[:]
	case "SHA-1":
		s := sha1.Sum([]byte(data)) //nolint:gosec // asked for by name
		sum = s[:]
	case "SHA-256":
		s := sha256.Sum256([]byte(data))
		sum = s[:]
	case "SHA-384":
		s := sha512.Sum384([]byte(data))
		sum = s[:]
	case "SHA-512":
		s := sha512.Sum512([]byte(data))
		sum = s[:]
	default:
		return nil, fmt.Errorf("%q is not one of MD5, SHA-1, SHA-256, SHA-384 and SHA-512", algorithm)
	}
	return hex.EncodeToString(sum), nil
}

// stringSplit uses each character of the splitter as a separator, and omits
// empty parts [recorded].
func stringSplit(_ Env, args []any, _ string) (any, error) {
	s, err := text(args, 0)
	if err != nil {
		return nil, err
	}
	splitter, err := text(args, 1)
	if err != nil {
		return nil, err
	}
	parts := []any{}
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(splitter, r) }) {
		parts = append(parts, part)
	}
	return parts, nil
}

func jsonMerge(_ Env, args []any, _ string) (any, error) {
	first, ok1 := args[0].(*document.Object)
	second, ok2 := args[1].(*document.Object)
	if !ok1 || !ok2 {
		return nil, errors.New("only objects can be merged")
	}
	if deep, ok := args[2].(bool); !ok || deep {
		return nil, errors.New("only a shallow merge is supported: the third argument is false")
	}
	merged := document.NewObject(first.Members()...)
	for _, m := range second.Members() {
		merged.Set(m.Key, m.Value)
	}
	return merged, nil
}

func uuidV4(env Env, _ []any, _ string) (any, error) {
	high := env.Random()&^0xf000 | 0x4000
	low := env.Random()&^(3<<62) | 1<<63
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, low&0xffffffffffff), nil
}

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }
