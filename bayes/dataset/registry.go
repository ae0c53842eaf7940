package dataset

// registry lists the embedded sets. data/SOURCES.md describes each, and has its source and licence.
var registry = []entry{
	{name: "boston", title: "Boston housing", rows: 506, splits: splits{Gal: 20, Javid: 10}},
	{name: "concrete", title: "Concrete compressive strength", rows: 1030, splits: splits{Gal: 20}},
	{name: "energy", title: "Energy efficiency, heating load", rows: 768, splits: splits{Gal: 20}},
	{name: "kin8nm", title: "Forward kinematics of an 8-link robot arm", rows: 8192, splits: splits{Gal: 20}},
	{
		name: "naval", title: "Condition-based maintenance of naval propulsion plants, compressor decay", rows: 11934,
		splits: splits{Gal: 20, PMCnet: 1},
		target: "kmc", ignore: []string{"kmt", "t1", "p1"}, // the turbine's decay, and two constant columns
	},
	{name: "power", title: "Combined cycle power plant", rows: 9568, splits: splits{Gal: 20}},
	{
		name: "protein", title: "Physicochemical properties of protein tertiary structure", rows: 45730,
		splits: splits{Gal: 5, PMCnet: 1},
	},
	{name: "wine_red", title: "Wine quality, red", rows: 1599, splits: splits{Gal: 20}},
	{name: "yacht", title: "Yacht hydrodynamics", rows: 308, splits: splits{Gal: 20}},
	{name: "california", title: "California housing", rows: 20640},
	{name: "airfoil", title: "Airfoil self-noise", rows: 1503, splits: splits{BDE: 1}},
	{name: "bikesharing", title: "Bike sharing, rides an hour", rows: 17379, splits: splits{BDE: 1}},
	{name: "australian", title: "Australian credit approval", rows: 690, task: BinaryClassification},
	{
		name: "breast_cancer", title: "Breast cancer Wisconsin, diagnostic", rows: 569, task: BinaryClassification,
		classes: []string{"benign", "malignant"},
	},
	{
		name: "ionosphere", title: "Ionosphere radar returns", rows: 351, task: BinaryClassification,
		splits: splits{PMCnet: 1}, ignore: []string{"v2"},
	},
	{name: "glass", title: "Glass identification", rows: 214, task: Classification, splits: splits{PMCnet: 1}},
	{
		name: "satellite", title: "Landsat satellite", rows: 6435, task: Classification, train: 4435,
		splits: splits{Official: 1},
	},
	{name: "wine", title: "Wine cultivars", rows: 178, task: Classification},
	{
		name: "adult", title: "Adult (census income)", rows: 48842, task: BinaryClassification, train: 32561,
		splits: splits{Official: 1},
		categorical: []string{
			"workclass", "education", "marital_status", "occupation", "relationship", "race", "sex", "native_country",
		},
	},
}
