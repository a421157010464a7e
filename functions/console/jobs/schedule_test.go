package jobs

import "testing"

func TestScheduleInWords(t *testing.T) {
	t.Parallel()
	for schedule, want := range map[string]string{
		"":                           "",
		"@every 1h":                  "every hour",
		"@every 90m":                 "every 1 h 30 min",
		"@every 24h":                 "every day",
		"@every 36h":                 "every 1 d 12 h",
		"@every 5s":                  "every 5 s",
		"@at 2027-03-01T08:00:00Z":   "once, on 1 March 2027 at 08:00 UTC",
		"@daily":                     "every day at 00:00",
		"@hourly":                    "every hour",
		"@weekly":                    "at 00:00, on Sunday",
		"@yearly":                    "at 00:00, on day 1 of the month, in January",
		"* * * * *":                  "every minute",
		"*/15 * * * *":               "every 15 minutes",
		"5 * * * *":                  "every hour at minute 5",
		"0 */2 * * *":                "every 2 hours",
		"0 */5 * * *":                "every day at 00:00, 05:00, 10:00, 15:00 and 20:00",
		"*/10 8-18 * * MON-FRI":      "every 10 minutes in the hours 8 to 18, on Monday to Friday",
		"30 2 * * *":                 "every day at 02:30",
		"0 2,14 * * *":               "every day at 02:00 and 14:00",
		"0 9 1,15 * *":               "at 09:00, on day 1 and 15 of the month",
		"0 9 1 JAN-MAR MON":          "at 09:00, on day 1 of the month or on Monday, in January to March",
		"0 9 */2 * 7":                "at 09:00, every 2 days of the month if it is also on Sunday",
		"0 9 * */3 *":                "every day at 09:00, every 3 months",
		"15,45 */6 * * 1-5":          "every 6 hours at minute 15 and 45, on Monday to Friday",
		"0 30 2 * * *":               "every day at 02:30",
		"0 6 L * *":                  "at 06:00, on the last day of the month",
		"0 6 LW * *":                 "at 06:00, on the last weekday of the month",
		"0 6 15W * *":                "at 06:00, on the weekday nearest to day 15 of the month",
		"0 6 * * FRI#3":              "at 06:00, on the third Friday of the month",
		"0 6 * * 5L":                 "at 06:00, on the last Friday of the month",
		"0 6 L-3 * *":                "0 6 L-3 * *",
		"5 0 6 * * *":                "5 0 6 * * *",
		"0 6 * * MON; 0 7 * * TUE":   "at 06:00, on Monday; at 07:00, on Tuesday",
		"no schedule <script>at all": "no schedule <script>at all",
	} {
		if got := scheduleWords(schedule); got != want {
			t.Errorf("%s: got %q, want %q", schedule, got, want)
		}
	}
}
