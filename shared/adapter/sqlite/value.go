package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
)

// bind turns arguments into the driver's values.
func bind(into []driver.NamedValue, args []any) ([]driver.NamedValue, error) {
	for i, arg := range args {
		v, err := value(arg)
		if err != nil {
			return into, fmt.Errorf("argument %d: %w", i+1, err)
		}
		into = append(into, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return into, nil
}

func value(arg any) (driver.Value, error) {
	switch v := arg.(type) {
	case nil, string, int64, float64, bool:
		return v, nil
	case int:
		return int64(v), nil
	case []byte:
		if v == nil {
			return nil, nil
		}
		return v, nil
	case driver.Valuer:
		return v.Value()
	}
	v := reflect.ValueOf(arg)
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return int64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.Pointer:
		if v.IsNil() {
			return nil, nil
		}
		return value(v.Elem().Interface())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return value(v.Bytes())
		}
	}
	return nil, fmt.Errorf("a %T cannot be stored", arg)
}

// assign copies a column's value to where into points.
func assign(into any, from driver.Value) error {
	switch p := into.(type) {
	case *string:
		switch v := from.(type) {
		case string:
			*p = v
			return nil
		case []byte:
			*p = string(v)
			return nil
		}
	case *int64:
		if v, ok := from.(int64); ok {
			*p = v
			return nil
		}
	case *int:
		if v, ok := from.(int64); ok {
			*p = int(v)
			return nil
		}
	case *bool:
		if v, ok := from.(int64); ok {
			*p = v != 0
			return nil
		}
	case *float64:
		switch v := from.(type) {
		case float64:
			*p = v
			return nil
		case int64:
			*p = float64(v)
			return nil
		}
	case *[]byte:
		switch v := from.(type) {
		case nil:
			*p = nil
			return nil
		case []byte:
			*p = v
			return nil
		case string:
			*p = []byte(v)
			return nil
		}
	case sql.Scanner:
		return p.Scan(from)
	}
	return assignKind(into, from)
}

// assignKind is assign for pointers to types made of the basic ones, and for
// pointers to pointers.
func assignKind(into any, from driver.Value) error {
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("a %T is no place for a value", into)
	}
	to := p.Elem()
	if to.Kind() == reflect.Pointer {
		if from == nil {
			to.SetZero()
			return nil
		}
		fresh := reflect.New(to.Type().Elem())
		if err := assign(fresh.Interface(), from); err != nil {
			return err
		}
		to.Set(fresh)
		return nil
	}
	switch v := from.(type) {
	case string:
		if to.Kind() == reflect.String {
			to.SetString(v)
			return nil
		}
		if to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Uint8 {
			to.SetBytes([]byte(v))
			return nil
		}
	case []byte:
		if to.Kind() == reflect.Slice && to.Type().Elem().Kind() == reflect.Uint8 {
			to.SetBytes(v)
			return nil
		}
	case int64:
		if to.CanInt() && !to.OverflowInt(v) {
			to.SetInt(v)
			return nil
		}
		if to.Kind() == reflect.Bool {
			to.SetBool(v != 0)
			return nil
		}
	case nil:
		if to.Kind() == reflect.Slice {
			to.SetZero()
			return nil
		}
		return fmt.Errorf("NULL does not fit into a %T", into)
	}
	return fmt.Errorf("a %T does not fit into a %T", from, into)
}
