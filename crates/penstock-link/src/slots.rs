//! What the caller has given with each packet, by a number that travels with the packet.

/// Places that are used again.
pub(crate) struct Slots<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

struct Place<T> {
    data: Option<T>,
    /// How many packets stand for it: more than one where netem has doubled it.
    packets: u64,
}

impl<T: Clone> Slots<T> {
    pub(crate) fn new() -> Slots<T> {
        Slots { places: Vec::new(), free: Vec::new() }
    }

    /// Keeps it for one packet; answers its number.
    pub(crate) fn put(&mut self, data: T) -> u32 {
        let place = Place { data: Some(data), packets: 1 };
        match self.free.pop() {
            Some(number) => {
                self.places[number as usize] = place;
                number
            }
            None => {
                self.places.push(place);
                self.places.len() as u32 - 1
            }
        }
    }

    /// So many more packets stand for it.
    pub(crate) fn share(&mut self, number: u32, more: u64) {
        self.places[number as usize].packets += more;
    }

    /// One of its packets has come to an end.
    pub(crate) fn take(&mut self, number: u32) -> T {
        let place = &mut self.places[number as usize];
        place.packets -= 1;
        if place.packets > 0 {
            return place.data.clone().expect("it is there as long as a packet stands for it");
        }
        self.free.push(number);
        place.data.take().expect("it is there as long as a packet stands for it")
    }
}
