package compact

import "strings"

// testWords are names that the corpus does not have.
var testWords = &Words{
	Services: names("convoy plan,dental care,sonar trace,lookout log,ammunition,tasking,ice chart,harbour pilot,helo deck,briefing,cargo list,salvage,mine map,watch bill,night vision"),
	Units:    names("KNM Helge Ingstad,HMS Visby,Viking-3,Ranger,Sierra-21,Quebec,lookout post,boat crew,convoy 8,wing 133,HDMS Thetis,Zulu,tug Bjorn,minehunter,cutter"),
	Places:   names("Andenes,Haakonsvern,Orland,Faslane,Zeebrugge,Kiel,Olavsvern,Jan Mayen,fjord,lighthouse,quay 14,anchorage,Vardo,Hammerfest"),
	First:    names("Wanda,Ulysses,Quentin,Yvonne,Zachary,Beatrix,Fergus,Gwendolyn,Horatio,Imogen,Jasper,Lavinia,Montgomery,Octavia,Percival,Rosalind,Sylvester,Theodora,Valentine,Winifred,Archibald,Clementine,Desmond,Euphemia,Florian,Gideon,Hortense,Ignatius,Josephine,Leopold,Millicent,Nathaniel,Ophelia,Ptolemy,Rufus,Seraphina,Thaddeus,Ursula,Vladimir,Xavier"),
	Last:     names("Abernathy,Blackwood,Cholmondeley,Dunwoody,Entwistle,Featherstone,Goldsworthy,Hawthorne,Ironside,Jellicoe,Kirkpatrick,Lockhart,McChomsky,Northcott,Ogilvie,Pemberton,Quigley,Ravenscroft,Standish,Thistlewood,Underhill,Vanderbilt,Wainwright,Yardley,Zimmermann,Ashcombe,Birtwhistle,Cavendish,Drinkwater,Eastwood,Fotheringay,Grimshaw,Hollingsworth,Inchbald,Jarrow,Kettlewell,Lovelace,Merriweather,Nettleton,Oxenham"),
	Titles:   names("Cubical Farmer,Midshipman,Bosun,Quartermaster,Stoker,Gunner,Helmsman,Yeoman,Purser,Shipwright,Bookkeeper,Librarian,Barista,Plumber,Welder,Janitor,Architect,Geologist,Astronomer,Locksmith"),
}

// names splits a list at its commas.
func names(s string) []string { return strings.Split(s, ",") }
