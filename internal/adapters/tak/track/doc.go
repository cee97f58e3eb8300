// Package track keeps the pictures of two sites alike with as little traffic as possible. It is pure: callers pass the
// time, which never goes back.
//
// Near holds the units of this site. For each it knows what the far side shows, because the far side extrapolates from
// the last reported course and speed. Near reports a unit when the far picture would be wrong by more than a third of
// its bound, and when the unit is new, has changed or is gone. A report never waits in a queue and becomes old: a Batch is made
// from the table at the moment at which it leaves. After a time Age without other reports, an empty batch confirms that all is
// still as reported.
//
// Far holds the units of one far site, and says what to show now and until when that is valid. It keeps the units of a
// site that has fallen silent; the next message of that site says that they are still as reported.
//
// An Outlet holds the reports that were sent to one audience: one site, or all sites of a radio network.
//
// Files: near.go units of this site, start here; outlet.go reports to an audience; when.go the time of the next batch;
// budget.go octets that units may use; far.go units of a far site.
package track
