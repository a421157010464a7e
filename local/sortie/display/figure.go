package display

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration formats a duration: "48 ms", "2.9 s", "12 min 5 s", "3 h 20 min".
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < 59950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

// Bytes formats a size in decimal units: "532 B", "1.7 MB".
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1000, 0
	for units := "kMGTP"; value >= 999.95 && unit < len(units)-1; unit++ {
		value /= 1000
	}
	return fmt.Sprintf("%.1f %cB", value, "kMGTP"[unit])
}

// Count formats an integer with thousands separators: "1,748,234".
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), ",")
}
