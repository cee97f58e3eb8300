// Package track keeps the picture of two sites alike with as little said as possible.
//
// Near holds the units of this site. Of each it knows what the far side shows, because the far side reckons on by the course
// and speed that it was told last. A unit is told when that would be wrong by more than a third of its bound, when it is new, has
// changed or is gone. Whatever waits is the newest there is: a Batch is made of the table at the moment in which it goes.
// When nothing else was said for Age, an empty batch says that all is still as told.
//
// Far holds the units of one far site and says what to show now, and until when that is true. Units of a site that fell silent are
// kept: its next word says that they are as told.
//
// Callers pass now, which never goes back. An Outlet is what one audience was told: a site, or all of a radio net.
//
// Files: near.go units of this site; outlet.go what an audience was told; when.go when it is told more; budget.go octets that units may take; far.go units of a far site.
package track
